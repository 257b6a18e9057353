# frozen_string_literal: true

# Elements are grouped by Strings that a block gives where the kernel left them, without a Ruby String for each.
RSpec.describe "Elements grouped by Strings that a block gives" do
  record = Struct.new(:name, :number)
  holder = Class.new do
    attr_reader :name

    def initialize(name) = @name = name
  end

  # Texts of each kind, made from a random number.
  kinds = {
    short: ->(n) { "k#{n % 60}" },
    long: ->(n) { "key number #{n % 60}, longer than an embedded one" },
    wide: ->(n) { "kéy №#{n % 60}" },
    empty: ->(_) { +"" },
    nul: ->(n) { "a\0b#{n % 5}\0" },
    broken: ->(n) { "\xff#{n % 5} \xe2\x82" },
    binary: ->(n) { "\xff#{n % 5} in no encoding".b },
    binary_ascii: ->(n) { "k#{n % 60}".b },
    us_ascii: ->(n) { "k#{n % 60}".encode("US-ASCII") },
    frozen: ->(n) { "f#{n % 9}" },
    distinct: ->(n) { "#{n} is another one" },
    same: ->(_) { "always this one" }
  }

  # Blocks that give a part of a String, a new one, or one of the program.
  blocks = {
    itself: ->(x) { (x + "")[0, x.size] },
    part: ->(x) { x[0, 3] },
    end: ->(x) { x[2..] || "" },
    joined: ->(x) { "<#{x[0, 2]}>" },
    upcase: ->(x) { x[0, 4].upcase },
    literal: ->(x) { x.size > 5 ? "long" : "short" }
  }
  nils = ->(x) { x.size > 5 ? x[0, 3] : nil }
  mixed = ->(x) { x.size > 5 ? x[0, 3] : x.size }
  symbols = ->(x) { x.size > 5 ? :long : :short }

  # What can be seen of a key or an element.
  seen = lambda do |value|
    case value
    when Hash, Array then [value.class, *value.to_a.map(&seen)]
    when String then [value.encoding, value.frozen?, value.valid_encoding?, value.b]
    else [value.class, value.inspect]
    end
  end
  # Whether the elements of two results are the very same objects.
  same = lambda do |found, expected|
    one, other = [found, expected].map { |result| result.is_a?(Hash) ? result.values.flatten(1) : result }
    seen.call(found) == seen.call(expected) && one.zip(other).all? { |a, b| a.equal?(b) }
  end
  mixtures = kinds.keys.map { |kind| [kind] }
  random = Random.new(51)
  mixtures += Array.new(20) { kinds.keys.sample(2 + random.rand(3), random: random) }

  on_every_backend do
    { **blocks, nils: nils, mixed: mixed, symbols: symbols }.each do |name, block|
      it "groups by #{name} as Ruby does" do
        random = Random.new(name.size)
        wrong = mixtures.product([0, 1, 70, 700]).reject do |mixture, size|
          list = Array.new(size) { kinds[mixture.sample(random: random)].call(random.rand(1 << 20)) }
          same.call(list.pgroup_by(backend: backend, unsupported: :ruby, &block), list.group_by(&block)) &&
            same.call(list.puniq(backend: backend, unsupported: :ruby, &block), list.uniq(&block))
        rescue ArgumentError, Encoding::CompatibilityError
          raise unless mixture.any? { |kind| %i[broken binary].include?(kind) }

          true
        end
        expect(wrong).to be_empty
      end
    end

    it "groups by the Strings of fields" do
      random = Random.new(7)
      wrong = mixtures.reject do |mixture|
        names = Array.new(90) { kinds[mixture.sample(random: random)].call(random.rand(1 << 20)) }
        records = Array.new(600) { |i| record.new(names[random.rand(90)], i) }
        holders = records.map { |one| holder.new(one.name) }
        [records, holders].all? do |list|
          same.call(list.pgroup_by(backend: backend, &:name), list.group_by(&:name)) &&
            same.call(list.puniq(backend: backend) { |x| x.name }, list.uniq { |x| x.name }) &&
            same.call(list.pgroup_by(backend: backend) { |x| x.name[0, 2] }, list.group_by { |x| x.name[0, 2] })
        end
      end
      expect(wrong).to be_empty
    end

    it "counts and groups values of chains" do
      random = Random.new(8)
      wrong = mixtures.product([0, 1, 700]).reject do |mixture, size|
        next true if mixture.intersect?(%i[broken binary])

        list = Array.new(size) { kinds[mixture.sample(random: random)].call(random.rand(1 << 20)) }
        chain = list.plazy(backend: backend).map { |x| x[0, 4] }
        plain = list.map { |x| x[0, 4] }
        seen.call(chain.tally) == seen.call(plain.tally) && seen.call(chain.uniq) == seen.call(plain.uniq) &&
          seen.call(chain.group_by(&:itself)) == seen.call(plain.group_by(&:itself)) &&
          seen.call(chain.uniq { |x| x[0, 2] }) == seen.call(plain.uniq { |x| x[0, 2] })
      end
      expect(wrong).to be_empty
    end

    it "counts values of other kinds by the same chain" do
      chain = ->(list) { list.plazy(backend: backend).map { |x| x + x } }
      lists = [%w[a b a c], [1, 2, 1], %w[c d c], [1.5, 2.0, 1.5], [1, 2, 1]]
      2.times do
        expect(lists.map { |list| chain[list].tally }).to eq(lists.map { |list| list.map { |x| x + x }.tally })
        expect(lists.map { |list| chain[list].uniq }).to eq(lists.map { |list| list.map { |x| x + x }.uniq })
      end
    end

    it "gives no result where the block raises or leaves" do
      list = Array.new(3000) { |i| "key #{i % 7}" }
      expect { list.pgroup_by(backend: backend) { |x| x == "key 5" ? raise(ArgumentError, x) : x[0, 5] } }
        .to raise_error(ArgumentError, "key 5")
      expect(list.puniq(backend: backend) { |x| x == "key 5" ? (break x) : x[0, 4] }).to eq "key 5"
      expect { list.plazy(backend: backend).map { |x| x == "key 5" ? raise(ArgumentError, x) : x[0, 5] }.tally }
        .to raise_error(ArgumentError, "key 5")
    end

    it "writes back what the block changes" do
      people = Array.new(700) { |i| record.new("name #{i % 9}", i) }
      found = people.pgroup_by(backend: backend) { |x| (x.number += 1) && x.name[0, 6] }
      expect(found.keys).to eq(Array.new(9) { |i| "name #{i}" })
      expect(people.map(&:number)).to eq [*1..700]
    end
  end

  it "groups Strings that changed since the last call" do
    list = Array.new(20_000) { |i| "key #{i % 700}" }
    group = ->(of) { [of.pgroup_by(backend: :cpu) { |x| x[0, 6] }, of.puniq(backend: :cpu) { |x| x[4..] }] }
    plain = ->(of) { [of.group_by { |x| x[0, 6] }, of.uniq { |x| x[4..] }] }
    3.times { expect(group[list]).to eq plain[list] }
    list[7] << " and more"
    list[19_000].replace("other")
    list[3].force_encoding("BINARY")
    2.times { expect(group[list]).to eq plain[list] }
    list[11] = list[12]
    list[400].upcase!
    list[401].setbyte(0, 200)
    list[402].freeze
    expect(group[list.reject { |x| !x.valid_encoding? }]).to eq plain[list.reject { |x| !x.valid_encoding? }]
    list[401] = "é"
    list.rotate!(5000)
    2.times { expect(group[list]).to eq plain[list] }
    list.shuffle!(random: Random.new(1))
    2.times { expect(group[list]).to eq plain[list] }
    expect(list.pmap(backend: :cpu) { |x| x }.zip(list)).to all(satisfy { |a, b| a.equal?(b) })
  end

  it "takes Strings of subclasses and those with methods of their own for plain Ruby" do
    subclass = Class.new(String)
    list = Array.new(600) { |i| i == 300 ? subclass.new("key 3") : "key #{i % 7}" }
    plain = output(/that is no plain String/).to_stderr
    found = nil
    expect { found = list.pgroup_by(backend: :cpu, unsupported: :ruby) { |x| x[0, 5] } }.to plain
    expect(found).to eq(list.group_by { |x| x[0, 5] })
    list[300] = "key 3".dup.tap { |x| def x.[](*) = "mine" }
    expect { found = list.pgroup_by(backend: :cpu, unsupported: :ruby) { |x| x[0, 5] } }.to plain
    expect(found).to eq(list.group_by { |x| x[0, 5] })
  end

  it "groups as Ruby does while the collector runs at each allocation" do
    found = run_under_gc_stress(
      "[words.pgroup_by { |x| x[0, 8] }, words.puniq { |x| x[4..] + x }, words.plazy.map { |x| x[0, 8] }.tally]",
      before: "Ikra.config.backend = :cpu\nwords = Array.new(300) { |i| \"key number \#{i % 13}\" }",
      show: "found == [words.group_by { |x| x[0, 8] }, words.uniq { |x| x[4..] + x }, words.map { |x| x[0, 8] }.tally]"
    )
    expect(found).to eq "true\n"
  end
end
