const s = "e\u0301👍🏽naïve";
console.log(s.length, [...s].length, s.normalize("NFC").length, s.codePointAt(2), String.fromCodePoint(128077), "\u{1F600}".charCodeAt(1), encodeURIComponent("ä&b c"), decodeURIComponent("%E2%82%AC"), escape("ü"));
