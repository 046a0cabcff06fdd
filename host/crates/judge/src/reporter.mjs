// Reports each test by name, a line of JSON each, for the judge. People get their own reporter beside it.
export default async function* report(source) {
  for await (const { type, data } of source) {
    if (type === 'test:pass' || type === 'test:fail') {
      const is_shown = data.skip === undefined && data.todo === undefined;
      yield `${JSON.stringify({ name: data.name, passed: type === 'test:pass', is_shown })}\n`;
    }
  }
  yield `${JSON.stringify({ is_end: true })}\n`;
}
