# Stores done before what is rescued stay done.
#
# elements = [Account(balance: 10, fails: 0), Account(balance: 3, fails: 0)]
# gives: [Account#1, Account#2]

class Broke < StandardError; end

class Account
  def take(amount)
    @balance -= amount
    raise Broke if @balance < 0
    @balance
  end

  def step
    take(4)
  rescue Broke
    @fails += 1
    @balance += 13
  end
end

elements.peach(5) { |a| a.step }
