# return from loops and inner blocks of a method.
#
# elements = [Shelf(books: [3, 8, 12]), Shelf(books: [])]
# gives: [8, -3]

class Shelf
  def first_over(limit)
    @books.each do |book|
      return book if book > limit
    end
    10.times { |i| return -i if i * i > limit }
    nil
  end
end

elements.pmap { |shelf| shelf.first_over(5) }
