# frozen_string_literal: true

# Methods of every object.
module Kernel
  def then
    yield(self)
  end

  def yield_self
    yield(self)
  end

  def tap
    yield(self)
    self
  end
end
