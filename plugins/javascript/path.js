// `require("path")`, for paths with `/`.
//
// It works on texts alone and looks at no file.

export function makePath(workingDirectory) {
  const join = (...parts) => normalize(parts.filter((part) => part !== "").join("/"));
  const normalize = (path) => {
    const isAbsolute = path.startsWith("/");
    const kept = [];
    for (const part of path.split("/")) {
      if (part === ".." && kept.length > 0 && kept.at(-1) !== "..") kept.pop();
      else if (part === ".." ? !isAbsolute : part !== "" && part !== ".") kept.push(part);
    }
    return (isAbsolute ? "/" : "") + kept.join("/") || ".";
  };
  const basename = (path, ending = "") => {
    const name = path.replace(/\/+$/, "").split("/").at(-1);
    return ending !== "" && name !== ending && name.endsWith(ending) ? name.slice(0, -ending.length) : name;
  };
  const path = {
    sep: "/",
    delimiter: ":",
    join,
    normalize,
    basename,
    dirname: (path) => path.replace(/\/+[^/]*\/*$/, "") || (path.startsWith("/") ? "/" : "."),
    extname: (path) => /(?<=[^/])\.[^./]*$/.exec(basename(path))?.[0] ?? "",
    isAbsolute: (path) => path.startsWith("/"),
    resolve: (...parts) => parts.reduce((at, part) => (part.startsWith("/") ? normalize(part) : join(at, part)), workingDirectory()),
    relative(from, to) {
      const [start, end] = [from, to].map((at) => path.resolve(at).split("/").filter(Boolean));
      let common = 0;
      while (common < Math.min(start.length, end.length) && start[common] === end[common]) common += 1;
      return [...start.slice(common).fill(".."), ...end.slice(common)].join("/");
    },
    parse(at) {
      const [base, dir] = [basename(at), path.dirname(at)];
      const ext = path.extname(base);
      const root = at.startsWith("/") ? "/" : "";
      return { root, dir: dir === "." && !at.startsWith("./") ? root : dir, base, ext, name: basename(base, ext) };
    },
    format({ root = "", dir, base, name = "", ext = "" }) {
      const last = base ?? name + (ext === "" || ext.startsWith(".") ? ext : `.${ext}`);
      if (!dir) return root + last;
      return dir === root ? dir + last : `${dir}/${last}`;
    },
  };
  return Object.assign(path, { posix: path });
}
