// npm run check:bundle: what small programs weigh when esbuild bundles and minifies them with the built package and gzip packs them. 1 KB is 1,000 bytes. The sizes are
// compared with those recorded here, and what has grown by more than 5% fails. That is a notice, no limit for code: clear code comes first. Record the new size, and why.
import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { gzipSync } from 'node:zlib'
import { build } from 'esbuild'

const root = fileURLToPath(new URL('..', import.meta.url))
if (!existsSync(`${root}dist/index.js`)) throw new Error('There is no dist/. Run npm run build first.')

/** How much larger than recorded a program may be. */
const MARGIN = 0.05

/** Programs, the sizes in KB that were recorded last, and the reason for the last change. */
const programs = [
  {
    name: 'symbolicTrace',
    code: "import { symbolicTrace } from 'tensorfx/fx'; console.log(symbolicTrace)",
    recorded: 44.2,
    why: 'messages and tracing since the first record, 42.1; and classes in the place of the closures that read the source of a function, 0.1',
  },
  {
    name: 'fx',
    code: "import * as fx from 'tensorfx/fx'; console.log(fx)",
    recorded: 50.5,
    why: 'messages, tracing and the section of docs/errors.md that errors name, since 48.1',
  },
  {
    name: 'inference',
    code: "import { loadModel, tensor } from 'tensorfx/core'; const model = loadModel(new Uint8Array(0)); console.log(model(tensor([1])))",
    recorded: 147.9,
    why: 'without threads (6.6 KB), and without the backwards of convolutions, pooling, norms, attention and embeddings (7.9 KB), since 162.4. The rest are the kernels and their schedules (47 KB: Winograd, direct convolutions, attention by blocks, products, transposes), for which 115.7 became 162.4, the operators (51 KB), layers, tensors and the format of files',
  },
  {
    name: 'torch',
    code: "import { torch } from 'tensorfx'; console.log(torch)",
    recorded: 345.7,
    why: 'threads, 7 KB, and the rules for symbols of more operators, since 324.3; linear algebra of complex matrices and stft, since 319.2; complex numbers and torch.fft, 11 KB, and the schedules of interpolate and of Winograd’s larger tiles, since 304.1; attention by blocks with its backward, direct convolutions as schedules, and 3 KB for samples of gamma and Dirichlet distributions with their gradients, since 285.4; schedules of kernels, first those of convolutions and transposes, since 273.1; rules for vmap, ONNX and autocast are fields of operators, layers take arguments by name, and operators, layers and messages were added since the first record, 259.4',
  },
  {
    name: 'compile',
    code: "import { compile } from 'tensorfx'; console.log(compile)",
    recorded: 483.1,
    why: 'joint graphs with sizes and what chooses between them and the program, 8 KB, more schedules of gradients, and graphs that are kept for later processes, 2 KB, since 459.4; threads, 7 KB, since 452.2; symbols as expressions, 22 KB, with which graphs print the sizes that they take and repros say what must hold of them, since 430.3; more operators and their rules for symbols, and sizes as symbols and graphs for tensors of other sizes, complex numbers with their linear algebra and Fourier transforms, and packed weights of eager products, since 390.3; attention by blocks with its backward, direct convolutions as schedules, packed weights of products, and distributions, since 370.8; what grew torch, Winograd’s convolutions and other schedules since 352.8, and backwards of some heads, views changed in place in graphs, and messages for methods off their object',
  },
]

/** The room of a file in dist, or the dependency. */
function partOf(path) {
  const dependency = /node_modules\/([^/]+)/.exec(path)
  return dependency !== null ? dependency[1] : (/dist\/(\w+)/.exec(path)?.[1] ?? 'the program')
}

const percent = (share) => `${share < 0 ? '' : '+'}${(share * 100).toFixed(1)}%`
const kilobytes = (bytes) => (bytes / 1000).toFixed(1)

for (const { name, code, recorded } of programs) {
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
  const [{ contents }] = outputFiles
  const packed = gzipSync(contents, { level: 9 }).length / 1000
  const growth = packed / recorded - 1
  const verdict = growth > MARGIN ? ': GROWN; record the new size in scripts/bundleSizes.mjs, and why' : ''
  if (verdict !== '') process.exitCode = 1
  console.log(
    `${name.padEnd(14)} ${packed.toFixed(1).padStart(6)} KB packed, ${percent(growth)} against ${recorded}, ${kilobytes(contents.length)} KB minified${verdict}`,
  )
  const largest = [...parts].toSorted((a, b) => b[1] - a[1]).filter(([, bytes]) => bytes > 500)
  console.log(`  minified: ${largest.map(([part, bytes]) => `${part} ${kilobytes(bytes)}`).join(', ')}`)
}
