# frozen_string_literal: true

# Private natives must withstand nonsense, too. They raise what Ruby's own methods raise, and the process works
# afterwards.
RSpec.describe "Natives" do
  # With more calls of each native, more combinations of arguments are tried.
  def nonsense(calls)
    program = File.expand_path("../support/natives/nonsense.rb", __dir__)
    command = [RbConfig.ruby, "--disable=gems", "-W0", "-I#{File.expand_path("../../lib", __dir__)}", "-rikra", program]
    Open3.capture2e({ "IKRA_BACKEND" => nil }, *command, calls.to_s, RSpec.configuration.seed.to_s).first
  end

  it "raise plain exceptions for arguments that they cannot take" do
    expect(nonsense(40)).to match(/\A\d+ natives, \d{5,} calls\n\z/)
  end

  it "raise plain exceptions for many more of them", :exhaustive do
    expect(nonsense(3000)).to match(/\A\d+ natives, \d{6,} calls\n\z/)
  end
end
