// Examples of documentation pages: JavaScript blocks that run, and what they print.
//
// A ```js block stands alone; ```js continue goes on where the block before it ended. What it prints is the ```text block that follows it, and
// `console.log(x) // value` says a printed value in place (up to `: `, an explanation).
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { vi } from 'vitest'

export interface Snippet {
  /** Line of the page, from 1. */
  readonly line: number
  readonly code: string
  /** Printed text that the page promises; null when it promises none. */
  readonly text: string | null
  /** From where to where in the page that text stands; both the end of the code when there is none. */
  readonly textAt: readonly [number, number]
  /** Code of the blocks that this one continues, in order. */
  readonly before: readonly string[]
}

const BLOCK = /```js( continue)?\n([\s\S]*?)```\n(\n```text\n([\s\S]*?)```\n)?/g

/** The examples of a page. */
export function snippetsOf(page: string): Snippet[] {
  const found: Snippet[] = []
  for (const match of page.matchAll(BLOCK)) {
    const [all, continues, code = '', block, text] = match
    const end = match.index + all.length
    const last = found.at(-1)
    found.push({
      line: page.slice(0, match.index).split('\n').length,
      code,
      text: text ?? null,
      textAt: [end - (block?.length ?? 0), end],
      before: continues === undefined || last === undefined ? [] : [...last.before, last.code],
    })
  }
  return found
}

const show = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value))
const folder = mkdtempSync(join(tmpdir(), 'tensorfx-docs-'))
let written = 0

/** Removes the files of the examples. */
export const removeExamples = (): void => rmSync(folder, { recursive: true, force: true })

/** Runs an example as a module of its own, and returns what it printed, one entry per call of console.log. Its file is called example.mjs there. */
export async function printed(snippet: Snippet): Promise<string[]> {
  let lines: string[] = []
  const log = vi.spyOn(console, 'log').mockImplementation((...values: unknown[]) => void lines.push(values.map(show).join(' ')))
  const home = join(folder, String(written++))
  const file = join(home, 'example.mjs')
  // Test files may share this process, and the one before this has removed its folder.
  mkdirSync(home, { recursive: true })
  // What the blocks before it print is theirs.
  writeFileSync(file, [...snippet.before, snippet.before.length > 0 ? 'globalThis.beginExample()\n' : '', snippet.code].join(''))
  Object.assign(globalThis, { beginExample: () => void (lines = []) })
  try {
    await import(file)
  } finally {
    log.mockRestore()
  }
  return lines.map((line) => line.replaceAll(`${home}/`, ''))
}

/** Values promised in comments behind console.log. */
export const promised = (code: string): string[] =>
  [...code.matchAll(/console\.log\(.*\) \/\/ (.*)$/gm)].map((m) => (m[1] as string).split(': ')[0] as string)

/** Spacing of lists as on the pages. */
export const spaced = (line: string): string => line.replaceAll(/,(?=\S)/g, ', ')
