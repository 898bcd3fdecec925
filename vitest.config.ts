// Tests import the package by its public names. They run on the sources; with TENSORFX_TEST_BUILT=1 the same suite runs on dist/.
import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vitest/config'

const built = process.env.TENSORFX_TEST_BUILT === '1'
const at = (path: string): string => fileURLToPath(new URL(path, import.meta.url))
const entry = (room: string): string => at(built ? `dist/${room}index.js` : `src/${room}index.ts`)

export default defineConfig({
  resolve: {
    alias: [
      { find: /^tensorfx$/, replacement: entry('') },
      { find: /^tensorfx\/compile$/, replacement: entry('dynamo/') },
      { find: /^tensorfx\/(.+)$/, replacement: at(built ? 'dist/' : 'src/') + '$1/' + (built ? 'index.js' : 'index.ts') },
    ],
  },
  test: {
    include: ['test/**/*.test.ts'],
    testTimeout: 30_000,
    pool: 'forks',
  },
})
