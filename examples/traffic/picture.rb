# frozen_string_literal: true

require_relative "model"

module Traffic
  # The town and its traffic as one SVG file, with the whole town on the left, and the centre enlarged on the right.
  class Picture
    WIDTH = 1720
    HEIGHT = 1360
    METRES_PER_DEGREE = 111_320.0

    # The most dots. More would cover the streets. Then only every nth actor is drawn, and the legend says so.
    MAX_DOTS = 4_000

    # Kinds of streets in the order of drawing: colour, and width in metres. They may be drawn wider, to be visible.
    STREETS = {
      %w[track path bridleway] => ["#2d5c4b", 4],
      %w[footway cycleway pedestrian steps] => ["#465472", 4],
      %w[service] => ["#485370", 6],
      %w[residential living_street unclassified] => ["#606c8a", 9],
      %w[tertiary tertiary_link] => ["#76829e", 12],
      %w[secondary secondary_link] => ["#94a0ba", 14],
      %w[primary primary_link] => ["#b9c3d8", 17]
    }.freeze

    Dot = Struct.new(:kind, :label, :colour)
    DOTS = [Dot.new(Pedestrian, "Pedestrian", "#ff6fb5"), Dot.new(Car, "Car", "#ffc247"), Dot.new(Bus, "Bus", "#37d5ff")].freeze

    STREET_LEGEND = { "primary" => "Primary road", "secondary" => "Secondary road", "tertiary" => "Tertiary road", "residential" => "Residential street",
                      "service" => "Service road", "footway" => "Footway, cycleway", "track" => "Track, path, bridleway" }.freeze

    def initialize(network, actors, title:, subtitle:)
      @network = network
      @title = title
      @subtitle = subtitle
      @every = (actors.size / MAX_DOTS.to_f).ceil.clamp(1..)
      @actors = actors.each_slice(@every).map(&:first)
      longitudes, latitudes = network.intersections.transpose.map(&:minmax)
      @west = longitudes.first
      @north = latitudes.last
      @squeeze = Math.cos(latitudes.sum / 2 * Math::PI / 180)
      @places = network.intersections.map { |longitude, latitude| metres(longitude, latitude) }
      @ground = metres(longitudes.last, latitudes.first)
    end

    def write(path)
      File.write(path, svg)
      path
    end

    def svg
      <<~SVG
        <svg xmlns="http://www.w3.org/2000/svg" width="#{WIDTH}" height="#{HEIGHT}" viewBox="0 0 #{WIDTH} #{HEIGHT}" font-family="Helvetica, Arial, 'DejaVu Sans', sans-serif">
        <rect width="#{WIDTH}" height="#{HEIGHT}" fill="#0d1220"/>
        #{town.to_svg}
        #{centre.to_svg}
        #{outline_of_centre}
        #{heading}
        #{legend}
        <text x="#{WIDTH - 30}" y="#{HEIGHT - 24}" text-anchor="end" font-size="14" fill="#7f8aa3">© OpenStreetMap contributors, ODbL 1.0</text>
        </svg>
      SVG
    end

    # A rectangle of the ground, seen through a rectangle of the page.
    class View
      attr_reader :scale

      def initialize(picture, id, page:, centre:, scale:, dot:)
        @picture = picture
        @id = id
        @left, @top, @width, @height = page
        @scale = scale
        @dot = dot
        @x = centre[0] - @width / scale / 2
        @y = centre[1] - @height / scale / 2
      end

      # The visible part of the ground: left, top, width and height in metres.
      def ground
        [@x, @y, @width / @scale, @height / @scale]
      end

      def page_point((x, y))
        [@left + (x - @x) * @scale, @top + (y - @y) * @scale]
      end

      def to_svg
        <<~SVG
          <clipPath id="#{@id}"><rect x="#{@left}" y="#{@top}" width="#{@width}" height="#{@height}" rx="10"/></clipPath>
          <g clip-path="url(##{@id})" fill="none" stroke-linecap="round" stroke-linejoin="round">
          <rect x="#{@left}" y="#{@top}" width="#{@width}" height="#{@height}" fill="#121829"/>
          #{streets.join("\n")}
          #{actors.join("\n")}
          </g>
          #{scale_bar}
        SVG
      end

      private

      def streets
        @picture.streets_by_style.map do |(colour, width), ends|
          lines = ends.filter_map { |from, to| line(page_point(from), page_point(to)) }
          %(<path d="#{lines.join}" stroke="#{colour}" stroke-width="#{(width * @scale).clamp(0.8, 12).round(2)}"/>)
        end
      end

      def actors
        @picture.points_by_dot.map do |dot, points|
          spots = points.filter_map { |point| spot(page_point(point)) }.join
          halo = %(<path d="#{spots}" stroke="#{dot.colour}" stroke-opacity="0.22" stroke-width="#{@dot * 2.4}"/>)
          %(#{halo}\n<path d="#{spots}" stroke="#{dot.colour}" stroke-width="#{@dot}"/>)
        end
      end

      def line(from, to)
        "M#{round(from)}L#{round(to)}" if seen?(from) || seen?(to)
      end

      # A line of no length with round ends is a dot.
      def spot(point)
        "M#{round(point)}h0" if seen?(point)
      end

      def round((x, y))
        "#{x.round(1)} #{y.round(1)}"
      end

      def seen?((x, y))
        x.between?(@left - 100, @left + @width + 100) && y.between?(@top - 100, @top + @height + 100)
      end

      def scale_bar
        metres = [2000, 1000, 500, 200, 100].find { |length| length * @scale < 180 } || 50
        label = metres < 1000 ? "#{metres} m" : "#{metres / 1000} km"
        left = @left + 24
        bottom = @top + @height - 24
        <<~SVG
          <rect x="#{left - 10}" y="#{bottom - 30}" width="#{(metres * @scale).round + 20}" height="40" rx="6" fill="#0d1220" fill-opacity="0.75"/>
          <path d="M#{left} #{bottom - 7}v7h#{(metres * @scale).round(1)}v-7" fill="none" stroke="#e8ecf5" stroke-width="2"/>
          <text x="#{left + metres * @scale / 2}" y="#{bottom - 10}" text-anchor="middle" font-size="14" fill="#e8ecf5">#{label}</text>
        SVG
      end
    end
    private_constant :View

    # Pairs of points by colour and width, the two directions of a street as one.
    def streets_by_style
      @streets_by_style ||= STREETS.to_h do |kinds, style|
        streets = @network.streets.select { |street| kinds.include?(street.kind) }.uniq { |street| [street.from, street.to].minmax }
        [style, streets.map { |street| [@places[street.from], @places[street.to]] }]
      end
    end

    def points_by_dot
      @points_by_dot ||= DOTS.to_h { |dot| [dot, @actors.grep(dot.kind).map { |actor| place(actor) }] }
    end

    private

    # Metres east and south of the north-western corner.
    def metres(longitude, latitude)
      [(longitude - @west) * @squeeze * METRES_PER_DEGREE, (@north - latitude) * METRES_PER_DEGREE]
    end

    # Three metres to the right of the street's middle.
    def place(actor)
      from_x, from_y = @places[actor.street.from]
      to_x, to_y = @places[actor.street.to]
      east = to_x - from_x
      south = to_y - from_y
      way = actor.progress / actor.street.length
      aside = 3.0 / Math.hypot(east, south).clamp(1.0..)
      [from_x + way * east - aside * south, from_y + way * south + aside * east]
    end

    def town
      height = HEIGHT - 60
      scale = (height - 20) / @ground[1]
      @town ||= View.new(self, "town", page: [30, 30, (@ground[0] * scale + 20).ceil, height], centre: @ground.map { |side| side / 2 }, scale: scale, dot: 2.2)
    end

    # The part with the densest streets: a square kilometre and a half around the square kilometre with the most
    # intersections.
    def centre
      busiest = @places.group_by { |x, y| [(x / 1000).floor, (y / 1000).floor] }.values.max_by(&:size)
      middle = busiest.transpose.map { |positions| positions.sum / positions.size }
      side = WIDTH - town_right - 60
      @centre ||= View.new(self, "centre", page: [town_right + 30, 210, side, 700], centre: middle, scale: 0.36, dot: 5)
    end

    def town_right
      @town_right ||= begin
        x, _, width, = town.ground
        town.page_point([x + width, 0]).first.ceil
      end
    end

    def outline_of_centre
      x, y, width, height = centre.ground
      left, top = town.page_point([x, y])
      size = %(width="#{(width * town.scale).round}" height="#{(height * town.scale).round}")
      %(<rect x="#{left.round}" y="#{top.round}" #{size} fill="none" stroke="#e8ecf5" stroke-opacity="0.6" rx="4"/>)
    end

    def heading
      <<~SVG
        <text x="#{town_right + 30}" y="84" font-size="40" font-weight="bold" fill="#f4f6fb">#{@title}</text>
        #{@subtitle.each_with_index.map { |line, n| %(<text x="#{town_right + 30}" y="#{122 + 28 * n}" font-size="19" fill="#aab4c8">#{line}</text>) }.join("\n")}
      SVG
    end

    def legend
      left = town_right + 30
      top = 960
      dots = DOTS.reverse.each_with_index.map do |dot, n|
        y = top + 34 * n
        %(<g fill="#{dot.colour}"><circle cx="#{left + 16}" cy="#{y}" r="12" fill-opacity="0.22"/><circle cx="#{left + 16}" cy="#{y}" r="5.5"/></g>) +
          text(left + 42, y, dot.label)
      end
      streets = STREET_LEGEND.each_with_index.map do |(kind, label), n|
        colour, width = STREETS.find { |kinds, _| kinds.include?(kind) }.last
        y = top + 34 * n
        %(<path d="M#{left + 270} #{y}h44" stroke="#{colour}" stroke-width="#{width * 0.5}" stroke-linecap="round"/>) + text(left + 330, y, label)
      end
      share = @every == 1 ? "One dot per actor." : "One dot for #{@every} actors."
      (dots + streets + [text(left, top + 34 * 4, share)]).join("\n")
    end

    def text(left, middle, words)
      %(<text x="#{left}" y="#{middle + 6}" font-size="17" fill="#d5dbe8">#{words}</text>)
    end
  end
end
