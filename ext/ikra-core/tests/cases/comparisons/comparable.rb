# Comparable by a class's own <=>.
#
# limit = Version(major: 2, minor: 1)
# elements = [Version(major: 1, minor: 9), Version(major: 2, minor: 1), limit, Version(major: 3, minor: 0)]
# gives: [4515, 4954, 5082, 684]
# checks: 12
#
# limit = Version(major: 2, minor: 1)
# elements = [Version(major: 1, minor: 9), Version(major: 0, minor: 1)]
# raises: ArgumentError at line 35, index 1, tick 0: comparison of Version with Version failed
#
# limit = 5
# elements = [Version(major: 1, minor: 9)]
# raises: ArgumentError at line 35, index 0, tick 0: comparison of Version with 5 failed
#
# limit = nil
# elements = [Version(major: 1, minor: 9)]
# raises: ArgumentError at line 35, index 0, tick 0: comparison of Version with nil failed

class Version
  include Comparable

  attr_reader :major, :minor

  def <=>(other)
    return nil unless other.is_a?(Version)
    return nil if major == 0

    major == other.major ? (minor - other.minor).to_f : major <=> other.major
  end
end

elements.pmap do |v|
  bits = 0
  bits += 1 if v < limit
  bits += 2 if v <= limit
  bits += 4 if v > limit
  bits += 8 if v >= limit
  bits += 16 if v == limit
  bits += 32 if v != limit
  bits += 64 if v.between?(limit, limit)
  bits += 128 if v.clamp(limit, limit).equal?(limit)
  bits += 256 if v.clamp(nil, limit) == v
  bits += 512 if v.clamp(limit, nil) == v
  bits += 1024 if v == 1
  bits += 2048 if 1 == v
  bits += 4096 if v.between?(v, limit)
  bits
end
