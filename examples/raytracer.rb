# frozen_string_literal: true

# A small ray tracer: spheres and a floor with shadows and mirrors, a new Vector for every step of the arithmetic.
#
#   ruby -Ilib examples/raytracer.rb [width]

require_relative "support/comparison"
require_relative "support/png"

module RayTracer
  class Vector
    attr_reader :x, :y, :z

    def initialize(x, y, z)
      @x = x
      @y = y
      @z = z
    end

    def +(other) = Vector.new(x + other.x, y + other.y, z + other.z)
    def -(other) = Vector.new(x - other.x, y - other.y, z - other.z)
    def *(factor) = Vector.new(x * factor, y * factor, z * factor)
    def -@ = self * -1.0
    def dot(other) = x * other.x + y * other.y + z * other.z
    def length = Math.sqrt(dot(self))
    def normalize = self * (1.0 / length)
    def reflect(normal) = self - normal * (2.0 * dot(normal))
    def mix(other, share) = self * (1.0 - share) + other * share
  end

  Ray = Struct.new(:origin, :direction) do
    def at(distance) = origin + direction * distance
  end

  class Sphere
    attr_reader :mirror

    def initialize(centre, radius, colour, mirror)
      @centre = centre
      @radius = radius
      @colour = colour
      @mirror = mirror
    end

    # How far the ray goes until it hits this; nil if it does not.
    def hit(ray)
      to = ray.origin - @centre
      half = to.dot(ray.direction)
      root = half * half - to.dot(to) + @radius * @radius
      return if root.negative?

      [-half - Math.sqrt(root), -half + Math.sqrt(root)].find { |distance| distance > 1e-4 }
    end

    def normal_at(point) = (point - @centre).normalize

    def colour_at(_) = @colour
  end

  class Floor
    UP = Vector.new(0.0, 1.0, 0.0)
    LIGHT = Vector.new(0.9, 0.9, 0.85)
    DARK = Vector.new(0.25, 0.3, 0.35)

    def mirror = 0.15

    def hit(ray)
      distance = -ray.origin.y / ray.direction.y
      distance if distance > 1e-4 && distance < 60.0
    end

    def normal_at(_) = UP

    def colour_at(point) = (point.x.floor + point.z.floor).even? ? LIGHT : DARK
  end

  class Scene
    SUN = Vector.new(-0.5, 0.8, -0.4).normalize
    HORIZON = Vector.new(0.95, 0.85, 0.75)
    SKY = Vector.new(0.25, 0.45, 0.8)

    def initialize(things)
      @things = things
    end

    def trace(ray, depth = 0)
      distance, thing = nearest(ray)
      return HORIZON.mix(SKY, ray.direction.y.clamp(0.0, 1.0)) unless thing

      point = ray.at(distance)
      normal = thing.normal_at(point)
      colour = thing.colour_at(point) * brightness(point, normal)
      return colour if depth == 3 || thing.mirror.zero?

      colour.mix(trace(Ray.new(point, ray.direction.reflect(normal)), depth + 1), thing.mirror)
    end

    private

    def nearest(ray)
      @things.filter_map { |thing| (distance = thing.hit(ray)) && [distance, thing] }.min_by(&:first)
    end

    def brightness(point, normal)
      shade = @things.any? { |thing| thing.hit(Ray.new(point, SUN)) }
      shade ? 0.2 : 0.2 + 0.8 * [normal.dot(SUN), 0.0].max
    end
  end

  def self.scene(random: Random.new(11))
    small = Array.new(24) do
      radius = 0.2 + random.rand * 0.3
      Sphere.new(Vector.new(random.rand * 10 - 5, radius, random.rand * 8 - 1), radius, Vector.new(random.rand, random.rand, random.rand), random.rand * 0.4)
    end
    Scene.new([Floor.new, Sphere.new(Vector.new(0.0, 1.2, 2.5), 1.2, Vector.new(0.9, 0.9, 0.9), 0.7), *small])
  end

  # Rows of pixels, red, green and blue.
  def self.run(width)
    scene = scene()
    height = width * 5 / 8
    eye = Vector.new(0.0, 1.6, -6.0)
    pixels = (0...width * height).pmap do |pixel|
      row, column = pixel.divmod(width)
      direction = Vector.new((column - width / 2.0) / width, (height / 2.0 - row) / width - 0.05, 0.9).normalize
      colour = scene.trace(Ray.new(eye, direction))
      [colour.x, colour.y, colour.z].map { |light| (Math.sqrt(light.clamp(0.0, 1.0)) * 255).round }
    end
    pixels.each_slice(width).to_a
  end
end

if $PROGRAM_NAME == __FILE__
  rows = Comparison.run(320) { |width| RayTracer.run(width) }
  PNG.write("raytracer.png", rows)
end
