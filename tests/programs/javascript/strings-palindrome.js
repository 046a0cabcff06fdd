const clean = (s) => s.toLowerCase().replace(/[^a-z0-9]/g, "");
for (const s of ["A man, a plan, a canal: Panama", "nope", ""]) console.log(clean(s) === [...clean(s)].reverse().join(""));
