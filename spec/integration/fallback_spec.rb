# frozen_string_literal: true

RSpec.describe "unsupported: :ruby" do
  it "runs a block that Ikra cannot run as plain Ruby, with a warning" do
    result = nil
    expect { result = [1, 2].pmap(unsupported: :ruby) { |x| ["number", x].inspect } }
      .to output(/\AIkra runs a block as plain Ruby:\n#{__FILE__}:#{__LINE__ - 1}:/).to_stderr
    expect(result).to eq(['["number", 1]', '["number", 2]'])
  end

  it "is an option of every call, and of all" do
    expect { [1].pmap { |x| [x].inspect } }.to raise_error(Ikra::CompileError)
    begin
      Ikra.configure { |c| c.unsupported = :ruby }
      expect { expect([1].pmap { |x| [x].inspect }).to eq(["[1]"]) }.to output(/plain Ruby/).to_stderr
      expect { [1].pmap(unsupported: :raise) { |x| [x].inspect } }.to raise_error(Ikra::CompileError)
    ensure
      Ikra.configure { |c| c.unsupported = :raise }
    end
  end

  it "warns through the logger where there is one" do
    logger = double(:logger)
    Ikra.logger = logger
    expect(logger).to receive(:warn).with(/Ikra runs a block as plain Ruby/)
    expect([1].pmap(unsupported: :ruby) { |x| [x].inspect }).to eq(["[1]"])
  ensure
    Ikra.logger = nil
  end

  it "knows tick and index" do
    seen = []
    expect { %w[a b].peach(2, unsupported: :ruby) { |x| seen << [x, Ikra.tick, Ikra.index] } }.to output.to_stderr
    expect(seen).to eq([["a", 0, 0], ["b", 0, 1], ["a", 1, 0], ["b", 1, 1]])
    expect { Ikra.tick }.to raise_error(RuntimeError)
  end

  it "gives what break gives, and raises what the block raises" do
    expect { expect([1, 2].pmap(unsupported: :ruby) { |x| break "left #{[x].inspect}" }).to eq("left [1]") }.to output.to_stderr
    expect { expect { [/a/].pmap(unsupported: :ruby) { |x| x.frobnicate } }.to raise_error(NoMethodError) }.to output.to_stderr
  end

  it "is not for blocks that Ikra can run" do
    expect { [1, 2].pmap(unsupported: :ruby) { |x| x + 1 } }.not_to output.to_stderr
  end
end
