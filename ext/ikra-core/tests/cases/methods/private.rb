# Private methods answer to self alone.
#
# elements = [Safe(code: 1), Safe(code: 2)]
# gives: [101, 201]
#
# elements = [Safe(code: 1), Safe(code: 13)]
# raises: NoMethodError at line 19, index 1, tick 0: private method `secret' called for #<Safe>

class Safe
  attr_reader :code

  def open = secret + 1

  private

  def secret = @code * 100
end

elements.pmap { |safe| safe.code == 13 ? safe.secret : safe.open }
