// Runs the examples of documentation pages (scripts/docs/examples.mjs finds them), and reads what they say that they print.
import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { vi } from 'vitest'
import { removeFolder } from '../helpers/folder.ts'
import type { Example } from '../../scripts/docs/examples.mjs'

const show = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value))
// vitest.config.ts strips the types of the files in folders of this name.
const folder = mkdtempSync(join(tmpdir(), 'tensorfx-docs-'))
let written = 0

/** Removes the files of the examples. */
export const removeExamples = (): void => removeFolder(folder)

/** Runs an example as a module of its own, and returns its output, one entry per call of console.log. Its file is called example.ts or example.mjs. */
export async function printed(example: Example): Promise<string[]> {
  let lines: string[] = []
  const log = vi.spyOn(console, 'log').mockImplementation((...values: unknown[]) => void lines.push(values.map(show).join(' ')))
  const home = join(folder, String(written++))
  const file = join(home, example.language === 'ts' ? 'example.ts' : 'example.mjs')
  // Test files may share this process, and the one before this has removed its folder.
  mkdirSync(home, { recursive: true })
  // The output of the blocks that it continues is not its own.
  writeFileSync(file, [...example.before, example.before.length > 0 ? 'globalThis.beginExample()\n' : '', example.code].join(''))
  Object.assign(globalThis, { beginExample: () => void (lines = []) })
  try {
    await import(file)
  } finally {
    log.mockRestore()
  }
  return lines.map((line) => line.replaceAll(`${home}/`, ''))
}

/** The values that comments behind console.log state, up to `: `, which starts an explanation. */
export const promised = (code: string): string[] =>
  [...code.matchAll(/console\.log\(.*\) \/\/ (.*)$/gm)].map((m) => (m[1] as string).split(': ')[0] as string)

/** Spacing of lists as on the pages. */
export const spaced = (line: string): string => line.replaceAll(/,(?=\S)/g, ', ')
