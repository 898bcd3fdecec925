// Every golden of a module has its tests: describeGolden compares cases and tests, this compares files and calls of describeGolden.
import { readFileSync, readdirSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'

const tests = fileURLToPath(new URL('../../', import.meta.url))

it('every file of goldens is ported, and once', () => {
  const goldens = readdirSync(`${tests}goldens/fx-modules`).map((name) => name.replace(/\.json$/, ''))
  const sources = readdirSync(tests, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.test.ts'))
  const ported = sources.flatMap((name) =>
    [...readFileSync(tests + name, 'utf8').matchAll(/^describeGolden\('([^']+)'/gm)].map(([, module = '']) => module),
  )
  expect(ported.toSorted()).toEqual(goldens.toSorted())
  expect(goldens).toHaveLength(44)
})
