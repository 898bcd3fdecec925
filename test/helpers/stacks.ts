// How stack traces read in a process that test files share. Vite's module runner writes the frames of all modules itself, from copies of their call sites. Only modules that went
// through Vite, the tests, need that, for their source maps; what Node loaded (see sources.ts) has its own lines. The library reads many traces, with the same frames of tests again and again.
type Format = (error: Error, sites: NodeJS.CallSite[]) => string

const INSTALLED = Symbol.for('tensorfx.test.stacks')

/** Whether Vite's module runner loaded the code of a frame: no generated code, nothing of the package, of dependencies and of Node. */
const isVites = (site: NodeJS.CallSite): boolean => {
  const file = site.getFileName()
  return file !== null && file !== undefined && !site.isEval() && /^(?:\/|file:)/.test(file) && !/\/(?:src|dist|node_modules)\//.test(file)
}

/** Reads stack traces with `format`, Vite's, where that is needed. */
function formatter(format: Format): Format {
  const mapped = new Map<string, string>()
  const frame = (site: NodeJS.CallSite): string => {
    const text = String(site)
    if (!isVites(site)) return text
    let line = mapped.get(text)
    if (line === undefined) mapped.set(text, (line = format(new Error(''), [site]).replace(/^Error: \n {4}at /, '')))
    return line
  }
  return (error, sites) => [`${error.name || 'Error'}: ${error.message || ''}`, ...sites.map(frame)].join('\n    at ')
}

if (!Reflect.has(globalThis, INSTALLED) && Error.prepareStackTrace !== undefined) {
  Error.prepareStackTrace = formatter(Error.prepareStackTrace)
  Reflect.set(globalThis, INSTALLED, true)
}
