// The page runs on the built package, as an application would.
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { gunzipSync } from 'node:zlib'
import { defineConfig } from 'vite'

const dist = (path) => fileURLToPath(new URL(`../../dist/${path}`, import.meta.url))

/** The digits as text, because some servers unpack .gz files and others do not. */
const digits = {
  name: 'digits',
  resolveId: (id) => (id === 'virtual:digits' ? id : null),
  load: (id) =>
    id === 'virtual:digits'
      ? `export default ${JSON.stringify(gunzipSync(readFileSync(new URL('../data/digits.csv.gz', import.meta.url))).toString())}`
      : null,
}

export default defineConfig({
  plugins: [digits],
  root: fileURLToPath(new URL('.', import.meta.url)),
  base: './',
  resolve: {
    alias: [
      { find: /^tensorfx$/, replacement: dist('index.js') },
      { find: /^tensorfx\/(.+)$/, replacement: `${dist('entries')}/$1.js` },
    ],
  },
  // Printed modules show their class names.
  esbuild: { keepNames: true },
  // The generated code of graphs is evaluated on purpose.
  build: {
    target: 'es2022',
    outDir: 'dist',
    emptyOutDir: true,
    assetsInlineLimit: 0,
    rollupOptions: { onwarn: (warning, warn) => (warning.code === 'EVAL' ? undefined : warn(warning)) },
  },
  worker: { format: 'es' },
})
