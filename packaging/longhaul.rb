# The formula of Homebrew on Linux, as a template: `packaging/fill.py` sets what stands in {{ }}.
class Longhaul < Formula
  desc "Host for long-running agents: sandboxed components, journaled effects"
  homepage "{{home}}"
  version "{{version}}"
  license any_of: ["MIT", "Apache-2.0"]

  on_linux do
    on_intel do
      url "{{releases}}/download/v{{version}}/longhaul-{{version}}-x86_64-unknown-linux-gnu.tar.gz"
      sha256 "{{sha256}}"
    end
  end

  depends_on :linux

  def install
    bin.install "longhaul"
    bash_completion.install "completions/longhaul.bash" => "longhaul"
    fish_completion.install "completions/longhaul.fish"
    zsh_completion.install "completions/_longhaul"
    man1.install Dir["man/*.1"]
    doc.install "README.md", "CHANGELOG.md", "LICENCES-OF-DEPENDENCIES.txt"
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/longhaul --version")
  end
end
