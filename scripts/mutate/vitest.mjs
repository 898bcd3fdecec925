// vitest for mutation testing: the suite on instrumented sources, in one process that keeps its modules from file to file.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { createVitest } from 'vitest/node'

export const root = fileURLToPath(new URL('../..', import.meta.url))

/** Tests of files as they lie there (declarations, pages, lint), which say nothing about a mutant. */
const unrelated = [
  ...['test/publicSurface.test.ts', 'test/docs/**', 'test/lint-rules/**', 'test/house/**', 'test/built/**'],
  // These run on dist/, in processes of their own, which have no mutants.
  'test/debug/{backends,deaths,goldens,guide}.test.ts',
]

/** A vitest whose sources are those of `work`/sources.json. The caller provides `mutant`: what is switched on, or null to record coverage. */
export async function mutationVitest(work, { workers, exclude = [], bail = 0, reporter = {}, ...options }) {
  const sources = new Map(Object.entries(JSON.parse(readFileSync(join(work, 'sources.json'), 'utf8'))))
  process.env.TENSORFX_MUTATE = work
  return createVitest(
    'test',
    {
      root,
      watch: false,
      isolate: false,
      // Kept modules would be without mutants.
      experimental: { fsModuleCache: false },
      fileParallelism: workers > 1,
      maxWorkers: workers,
      bail,
      // Instrumented code is slow, and the machine may be busy.
      testTimeout: 120_000,
      reporters: [reporter],
      setupFiles: [fileURLToPath(new URL('setup.mjs', import.meta.url))],
      exclude: [...unrelated, ...exclude],
      env: { TENSORFX_MUTATE: work },
      ...options,
    },
    {
      plugins: [
        {
          name: 'mutants',
          enforce: 'pre',
          transform: (_, id) => sources.get(id.split('?')[0]),
        },
      ],
    },
  )
}
