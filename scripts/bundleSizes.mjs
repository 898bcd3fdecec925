// npm run check:bundle: what small programs weigh when esbuild bundles and minifies them with the built package. 1 KB is 1,000 bytes. Fails above the limits.
import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'

const root = fileURLToPath(new URL('..', import.meta.url))
if (!existsSync(`${root}dist/index.js`)) throw new Error('There is no dist/. Run npm run build first.')

const { allOperators } = await import(`${root}dist/ops/generated/all.js`)
const { Module, ...nn } = await import(`${root}dist/nn/index.js`)
const operators = allOperators.filter(({ name }) => !name.endsWith('_')).length
const layers = Object.values(nn).filter((value) => value?.prototype instanceof Module).length
/** The first version had 213 operators besides in-place forms and 33 layers, and weighed 402; each operator since may add 0.8, each layer 0.2, and each of six dtypes 4. torch.masked and torch.signal.windows, which are no operators, weigh 12. */
const torchLimit = 435 + 4 * 6 + 0.8 * (operators - 213) + 0.2 * (layers - 33)
/** What `compile` may add to the program that has only `torch`: capture, functionalization, the compiler, its events and logs, and the debugger for failures. */
const COMPILER = 198

/** Programs, and how many KB each may weigh; `sizes` has the sizes of those before it. */
const programs = [
  { name: 'symbolicTrace', code: "import { symbolicTrace } from 'tensorfx/fx'; console.log(symbolicTrace)", limit: () => 114 },
  { name: 'fx', code: "import * as fx from 'tensorfx/fx'; console.log(fx)", limit: () => 132 },
  { name: 'torch', code: "import { torch } from 'tensorfx'; console.log(torch)", limit: () => torchLimit },
  { name: 'compile', code: "import { compile } from 'tensorfx'; console.log(compile)", limit: (sizes) => sizes.torch + COMPILER },
]
const sizes = {}

/** The room of a file in dist, or the dependency. */
function partOf(path) {
  const dependency = /node_modules\/([^/]+)/.exec(path)
  return dependency !== null ? dependency[1] : (/dist\/(\w+)/.exec(path)?.[1] ?? 'the program')
}

const kilobytes = (bytes) => (bytes / 1000).toFixed(1)

for (const { name, code, limit: limitOf } of programs) {
  const { metafile, outputFiles } = await build({
    stdin: { contents: code, resolveDir: root, loader: 'js' },
    bundle: true,
    minify: true,
    format: 'esm',
    platform: 'neutral',
    mainFields: ['module', 'main'],
    write: false,
    metafile: true,
    logLevel: 'error',
    // Not the sources, at which this repository's own settings point.
    tsconfigRaw: {},
  })
  const parts = new Map()
  for (const [path, { bytesInOutput }] of Object.entries(Object.values(metafile.outputs)[0].inputs))
    parts.set(partOf(path), (parts.get(partOf(path)) ?? 0) + bytesInOutput)
  const size = outputFiles[0].contents.length / 1000
  sizes[name] = size
  const limit = limitOf(sizes)
  const ok = size <= limit
  if (!ok) process.exitCode = 1
  console.log(`${name.padEnd(14)} ${size.toFixed(1).padStart(6)} KB (at most ${Math.floor(limit)}${ok ? '' : ': TOO LARGE'})`)
  const largest = [...parts].toSorted((a, b) => b[1] - a[1]).filter(([, bytes]) => bytes > 500)
  console.log(`  ${largest.map(([part, bytes]) => `${part} ${kilobytes(bytes)}`).join(', ')}`)
}
