# frozen_string_literal: true

module Ikra
  # A read of which the host has made sure that it is in range.
  def self.__at(list, index) = list.__at(index)

  # A write of which the host has made sure that it is in range, and that nobody else writes there.
  def self.__put(list, index, value) = list.__put(index, value)

  # Adds a pair of an element to the groups that the section gives.
  def self.__add(key, value, number)
    if key.is_a?(::Array)
      key.__key_parts
      __emit_parts(value, number)
    else
      __emit_pair(key, value, number)
    end
  end

  # A part of a String. The host has made sure that it exists.
  def self.__text(text, from, size) = text.__view(from, size)
end
