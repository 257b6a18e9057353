# frozen_string_literal: true

module Ikra
  # A read of which the host has made sure that it is in range.
  def self.__at(list, index) = list.__at(index)

  # A write of which the host has made sure that it is in range, and that nobody else writes there.
  def self.__put(list, index, value) = list.__put(index, value)

  # Adds a pair of an element to the groups that the section gives. Gives the number of the element's next pair.
  def self.__add(key, value, number) = number.__pair(key, value)

  # A part of a String. The host has made sure that it exists.
  def self.__text(text, from, size) = text.__view(from, size)
end
