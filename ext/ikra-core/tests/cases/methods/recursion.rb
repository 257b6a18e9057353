# Methods that call themselves and each other.
#
# elements = [0, 1, 5, 10]
# gives: [0, -1, -5, 55]

def fib(n)
  return n if n < 2

  fib(n - 1) + fib(n - 2)
end

def even_steps?(n) = n == 0 ? true : odd_steps?(n - 1)
def odd_steps?(n) = n == 0 ? false : even_steps?(n - 1)

elements.pmap { |n| even_steps?(n) ? fib(n) : -fib(n) }
