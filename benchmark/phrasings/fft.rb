# frozen_string_literal: true

class Program::Fft
  phrasing "flat Arrays, a call for each stage, Arrays exchanged, temporaries" do
    def compute((stages, cosine, sine, re, im, other_re, other_im))
      half = cosine.size
      stages.times do |stage|
        distance = 2**stage
        (0...half).peach do |index|
          angle = index - index % distance
          up = index + angle
          down = up + distance
          a_re, a_im, b_re, b_im = re[index], im[index], re[index + half], im[index + half]
          down_re = a_re - b_re
          down_im = a_im - b_im
          other_re[up] = a_re + b_re
          other_im[up] = a_im + b_im
          other_re[down] = down_re * cosine[angle] - down_im * sine[angle]
          other_im[down] = down_re * sine[angle] + down_im * cosine[angle]
        end
        re, im, other_re, other_im = other_re, other_im, re, im
      end
    end
  end

  phrasing "flat Arrays, chosen by a ternary, shifts in place of /" do
    def compute((stages, cosine, sine, re, im, other_re, other_im))
      half = cosine.size
      (0...half).peach(stages) do |index|
        stage = Ikra.tick
        from_re, from_im, to_re, to_im = stage.odd? ? [other_re, other_im, re, im] : [re, im, other_re, other_im]
        angle = index >> stage << stage
        up = index + angle
        down = up + (1 << stage)
        down_re = from_re[index] - from_re[index + half]
        down_im = from_im[index] - from_im[index + half]
        to_re[up] = from_re[index] + from_re[index + half]
        to_im[up] = from_im[index] + from_im[index + half]
        to_re[down] = down_re * cosine[angle] - down_im * sine[angle]
        to_im[down] = down_re * sine[angle] + down_im * cosine[angle]
      end
    end
  end

  phrasing "an Array of both pairs of Arrays, divmod, a distance that doubles" do
    def compute((stages, cosine, sine, *numbers))
      pairs = numbers.each_slice(2).to_a
      half = cosine.size
      distance = 1
      stages.times do |stage|
        re, im = pairs[stage % 2]
        to_re, to_im = pairs[(stage + 1) % 2]
        (0...half).peach do |index|
          group, within = index.divmod(distance)
          first = 2 * group * distance + within
          to_re[first] = re[index] + re[index + half]
          to_im[first] = im[index] + im[index + half]
          x = re[index] - re[index + half]
          y = im[index] - im[index + half]
          to_re[first + distance] = x * cosine[group * distance] - y * sine[group * distance]
          to_im[first + distance] = x * sine[group * distance] + y * cosine[group * distance]
        end
        distance *= 2
      end
    end
  end

  # A transform that knows its Arrays, with methods cut small.
  class Transform
    attr_reader :cosine, :sine, :half

    def initialize(cosine, sine)
      @cosine = cosine
      @sine = sine
      @half = cosine.size
    end

    def angle(index, distance) = index / distance * distance
    def turned_re(x, y, angle) = x * cosine[angle] - y * sine[angle]
    def turned_im(x, y, angle) = x * sine[angle] + y * cosine[angle]
    def sum(list, index) = list[index] + list[index + half]
    def difference(list, index) = list[index] - list[index + half]

    def butterfly(index, distance, re, im, to_re, to_im)
      add(index, distance, re, im, to_re, to_im)
      turn(index, distance, re, im, to_re, to_im)
    end

    private

    def add(index, distance, re, im, to_re, to_im)
      up = index + angle(index, distance)
      to_re[up] = sum(re, index)
      to_im[up] = sum(im, index)
    end

    def turn(index, distance, re, im, to_re, to_im)
      down = index + angle(index, distance) + distance
      to_re[down] = turned_re(difference(re, index), difference(im, index), angle(index, distance))
      to_im[down] = turned_im(difference(re, index), difference(im, index), angle(index, distance))
    end
  end

  phrasing "an object with methods cut small" do
    def compute((stages, cosine, sine, re, im, other_re, other_im))
      transform = Transform.new(cosine, sine)
      (0...transform.half).peach(stages) do |index|
        case Ikra.tick % 2
        when 0 then transform.butterfly(index, 1 << Ikra.tick, re, im, other_re, other_im)
        when 1 then transform.butterfly(index, 1 << Ikra.tick, other_re, other_im, re, im)
        end
      end
    end
  end

  phrasing "flat Arrays, a job for eight pairs, while" do
    def compute((stages, cosine, sine, re, im, other_re, other_im))
      half = cosine.size
      stages.times do |stage|
        distance = 1 << stage
        (0...half / 8).peach do |job|
          index = 8 * job
          while index < 8 * job + 8
            angle = index / distance * distance
            down_re = re[index] - re[index + half]
            down_im = im[index] - im[index + half]
            other_re[index + angle] = re[index] + re[index + half]
            other_im[index + angle] = im[index] + im[index + half]
            other_re[index + angle + distance] = down_re * cosine[angle] - down_im * sine[angle]
            other_im[index + angle + distance] = down_re * sine[angle] + down_im * cosine[angle]
            index += 1
          end
        end
        re, other_re = other_re, re
        im, other_im = other_im, im
      end
    end
  end

  # Numbers as objects, which each stage makes anew.
  module Made
    def state(input)
      turns, numbers = [%i[cosine sine], %i[re im]].map { |names| names.map { |name| input.fetch(name).values }.transpose.map { |parts| number(*parts) } }
      [input[:stages], turns, numbers]
    end

    def changes? = false

    # The results of the stage before the last one, and of the last one.
    def outputs((stages, *), two) = STATE.zip(two.rotate(stages + 1).flat_map { |numbers| parts(numbers) }).to_h

    def parts(numbers) = [numbers.map { |number| number.real }, numbers.map { |number| number.imaginary }]

    # Each number of a stage is computed by itself.
    def compute((stages, turns, numbers))
      half = turns.size
      before = nil
      stages.times do |stage|
        distance = 1 << stage
        before = numbers
        numbers = (0...2 * half).pmap do |place|
          angle = place / (2 * distance) * distance
          index = angle + place % distance
          if place % (2 * distance) < distance
            before[index] + before[index + half]
          else
            (before[index] - before[index + half]) * turns[angle]
          end
        end
      end
      [before, numbers]
    end
  end

  phrasing "Complexes, pmap, a job for each number" do
    include Made

    def number(re, im) = Complex(re, im)
  end

  Number = Struct.new(:real, :imaginary) do
    def +(other) = Number.new(real + other.real, imaginary + other.imaginary)
    def -(other) = Number.new(real - other.real, imaginary - other.imaginary)
    def *(other) = Number.new(real * other.real - imaginary * other.imaginary, real * other.imaginary + imaginary * other.real)
  end

  phrasing "Structs with operators, pmap, a job for each number" do
    include Made

    def number(...) = Number.new(...)
  end

  phrasing "Arrays of two numbers, pmap, early next" do
    include Made

    def number(re, im) = [re, im]
    def parts(numbers) = numbers.transpose

    def compute((stages, turns, numbers))
      half = turns.size
      before = nil
      stages.times do |stage|
        distance = 1 << stage
        before = numbers
        numbers = (0...2 * half).pmap do |place|
          angle = place / (2 * distance) * distance
          index = angle + place % distance
          a_re, a_im = before[index]
          b_re, b_im = before[index + half]
          next [a_re + b_re, a_im + b_im] if place % (2 * distance) < distance

          cosine, sine = turns[angle]
          [(a_re - b_re) * cosine - (a_im - b_im) * sine, (a_re - b_re) * sine + (a_im - b_im) * cosine]
        end
      end
      [before, numbers]
    end
  end

  # One that is changed in place.
  class Cell
    attr_accessor :re, :im

    def initialize(re, im)
      @re = re
      @im = im
    end

    def sum_of(one, other)
      self.re = one.re + other.re
      self.im = one.im + other.im
    end

    def difference_of(one, other, turn)
      x = one.re - other.re
      y = one.im - other.im
      self.re = x * turn.re - y * turn.im
      self.im = x * turn.im + y * turn.re
    end
  end

  phrasing "objects that are changed in place, attributes" do
    def state(input)
      [input[:stages], *[%i[cosine sine], %i[re im], %i[other_re other_im]].map { |names| names.map { |name| input.fetch(name).values }.transpose.map { |parts| Cell.new(*parts) } }]
    end

    def outputs((_, _, cells, others), _result)
      { re: cells.map(&:re), im: cells.map(&:im), other_re: others.map(&:re), other_im: others.map(&:im) }
    end

    def compute((stages, turns, cells, others))
      half = turns.size
      stages.times do |stage|
        distance = 1 << stage
        (0...half).peach do |index|
          angle = index / distance * distance
          others[index + angle].sum_of(cells[index], cells[index + half])
          others[index + angle + distance].difference_of(cells[index], cells[index + half], turns[angle])
        end
        cells, others = others, cells
      end
    end
  end

  # MDArrays in place of Arrays.
  module MDArrays
    def state(input)
      stages, *arrays = super
      [stages, *arrays.map { |array| Ikra::MDArray.new(array) }]
    end
  end

  phrasing "MDArrays, elements by index" do
    include MDArrays

    def outputs(...) = super.transform_values(&:to_a)

    def compute((stages, cosine, sine, re, im, other_re, other_im))
      (0...cosine.size).peach(stages) do |index|
        distance = 1 << Ikra.tick
        if Ikra.tick.even?
          butterfly(index, distance, cosine, sine, re, im, other_re, other_im)
        else
          butterfly(index, distance, cosine, sine, other_re, other_im, re, im)
        end
      end
    end
  end

  phrasing "MDArrays, operators over halves" do
    include MDArrays

    def outputs((stages, *), two) = STATE.zip(two.rotate(stages + 1).flatten(1).map(&:to_a)).to_h

    def compute((stages, cosine, sine, re, im, *))
      half = cosine.size
      before = nil
      stages.times do |stage|
        distance = 1 << stage
        before = [re, im]
        x, y, c, s = [re[half..], im[half..], cosine, sine].map { |list| list.reshape(half / distance, distance) }
        a, b = [re[...half], im[...half]].map { |list| list.reshape(half / distance, distance) }
        c, s = [c, s].map { |list| list[true, 0..0] }
        re = Ikra::MDArray.concat(a + x, (a - x) * c - (b - y) * s, axis: 1).flatten
        im = Ikra::MDArray.concat(b + y, (a - x) * s + (b - y) * c, axis: 1).flatten
      end
      [before, [re.sync, im.sync]]
    end
  end
end
