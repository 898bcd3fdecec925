// npm run check:bundle: what small programs weigh when esbuild bundles and minifies them with the built package. 1 KB is 1,000 bytes. Fails above the limits.
import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'

const root = fileURLToPath(new URL('..', import.meta.url))
if (!existsSync(`${root}dist/index.js`)) throw new Error('There is no dist/. Run npm run build first.')

/**
 * A program, and how many KB it may weigh. Without the checks of what comes from outside (arguments, graphs from files) fx would be below 125; each of the
 * roughly 150 operators since the first version may add 0.8 to torch, and each of six dtypes 4.
 */
const programs = [
  { name: 'symbolicTrace', code: "import { symbolicTrace } from 'tensorfx/fx'; console.log(symbolicTrace)", limit: 116 },
  { name: 'fx', code: "import * as fx from 'tensorfx/fx'; console.log(fx)", limit: 134 },
  { name: 'torch', code: "import { torch } from 'tensorfx'; console.log(torch)", limit: 544 },
  { name: 'compile', code: "import { compile } from 'tensorfx'; console.log(compile)", limit: 670 },
]

/** The room of a file in dist, or the dependency. */
function partOf(path) {
  const dependency = /node_modules\/([^/]+)/.exec(path)
  return dependency !== null ? dependency[1] : (/dist\/(\w+)/.exec(path)?.[1] ?? 'the program')
}

const kilobytes = (bytes) => (bytes / 1000).toFixed(1)

for (const { name, code, limit } of programs) {
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
  const ok = size <= limit
  if (!ok) process.exitCode = 1
  console.log(`${name.padEnd(14)} ${size.toFixed(1).padStart(6)} KB (at most ${limit}${ok ? '' : ': TOO LARGE'})`)
  const largest = [...parts].toSorted((a, b) => b[1] - a[1]).filter(([, bytes]) => bytes > 500)
  console.log(`  ${largest.map(([part, bytes]) => `${part} ${kilobytes(bytes)}`).join(', ')}`)
}
