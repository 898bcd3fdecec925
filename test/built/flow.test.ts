// CONTRIBUTING shows which files a call passes through as they were recorded.
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { root } from './node.ts'

it('CONTRIBUTING.md shows what npm run flow records; npm run flow -- --write updates it', () => {
  const lines = (text: string): string[] => text.split('\n').filter((line) => line.trim() !== '')
  const recorded = lines(execFileSync(process.execPath, [`${root}scripts/flow.mjs`], { encoding: 'utf8' }))
  expect(recorded).toContain('4. `src/dispatch/dispatch.ts`: dispatch')
  const page = readFileSync(`${root}CONTRIBUTING.md`, 'utf8')
  expect(lines(page.slice(page.indexOf('<!-- flow:'), page.indexOf('<!-- /flow -->'))).slice(1)).toEqual(recorded)
})
