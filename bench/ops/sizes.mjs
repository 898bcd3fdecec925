// npm run bench:sizes: what a page downloads to compute on the CPU with each library, bundled and minified by esbuild and packed by gzip, with the WebAssembly file that some
// libraries load beside their code. 1 KB is 1,000 bytes. The row of sizes in the README.
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { gzipSync } from 'node:zlib'
import { build } from 'esbuild'

const others = fileURLToPath(new URL('others/', import.meta.url))
const root = fileURLToPath(new URL('../../', import.meta.url))
const { resolve } = createRequire(join(others, 'package.json'))
const wasmOf = (name, file) => join(dirname(resolve(name)), file)

const PROGRAMS = {
  'tensorfx, tensors, gradients and layers': { code: "import { torch, nn } from 'tensorfx'; console.log(torch, nn)", from: root },
  'tensorfx, compile': { code: "import { compile } from 'tensorfx'; console.log(compile)", from: root },
  '@jax-js/jax': { code: "import { numpy, grad, jit, init } from '@jax-js/jax'; console.log(numpy, grad, jit, init)", from: others },
  'tfjs-core and tfjs-backend-wasm': {
    code: "import * as tf from '@tensorflow/tfjs-core'; import '@tensorflow/tfjs-backend-wasm'; console.log(tf)",
    from: others,
    wasm: wasmOf('@tensorflow/tfjs-backend-wasm', 'tfjs-backend-wasm-simd.wasm'),
  },
  'onnxruntime-web/wasm': {
    code: "import * as ort from 'onnxruntime-web/wasm'; console.log(ort)",
    from: others,
    wasm: wasmOf('onnxruntime-web', 'ort-wasm-simd-threaded.wasm'),
  },
}

const packed = (bytes) => gzipSync(bytes, { level: 9 }).length / 1000

for (const [name, { code, from, wasm }] of Object.entries(PROGRAMS)) {
  const { outputFiles } = await build({
    stdin: { contents: code, resolveDir: from, loader: 'js' },
    bundle: true,
    minify: true,
    format: 'esm',
    platform: 'browser',
    write: false,
    logLevel: 'error',
    tsconfigRaw: {},
    external: [
      'node:*',
      'fs',
      'path',
      'os',
      'perf_hooks',
      'worker_threads',
      'module',
      'util',
      'crypto',
      'koffi',
      'z3-solver',
      '@hpcc-js/wasm-graphviz',
    ],
  })
  const beside = wasm === undefined ? '' : ` + ${packed(readFileSync(wasm)).toFixed(0)} KB WebAssembly`
  console.log(`${name}: ${packed(outputFiles[0].contents).toFixed(0)} KB${beside}`)
}
