// docs/mistakes.md: every mistake throws the error that the page shows, the error names what to write instead, and that runs. TENSORFX_UPDATE_DOCS=1 writes
// the messages into the page: read the difference before you keep it.
import { readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { compile, fx, nn, optim, torch } from 'tensorfx'

const path = fileURLToPath(new URL('../../docs/mistakes.md', import.meta.url))
const page = readFileSync(path, 'utf8')
const update = process.env['TENSORFX_UPDATE_DOCS'] === '1'
const scope = { compile, fx, nn, optim, torch }

const setup = /```js setup\n([\s\S]*?)```/.exec(page)?.[1] ?? ''
const MISTAKE = /^### (.*)\n\n```js wrong\n([\s\S]*?)```\n\n```text\n([\s\S]*?)```\n\n```js right\n([\s\S]*?)```/gm
const mistakes = [...page.matchAll(MISTAKE)].map(([, title = '', wrong = '', text = '', right = '']) => ({ title, wrong, text, right }))

/** Runs an example after the setup of the page, in strict mode like any module. */
function run(code: string): void {
  // oxlint-disable-next-line typescript/no-implied-eval -- the examples of a page of ours
  new Function(...Object.keys(scope), `'use strict'\n${setup}\n${code}`)(...Object.values(scope))
}

/** The error of an example as `Name: message`, without the frames that a TraceError shows, and without the backends that other tests register; '' if it does not throw. */
function errorOf(code: string): string {
  try {
    run(code)
    return ''
  } catch (error) {
    return error instanceof Error
      ? `${error.name}: ${error.message.replace(/\s*\n +at [^]*$/, '').replace(/(Registered are .*?, inductor).*?(?=\. Register )/, '$1')}`
      : String(error)
  }
}

const wordsOf = (text: string): Set<string> => new Set(text.match(/[A-Za-z_$][\w$]*|\[|\]/g))

it('has at least 30 mistakes', () => expect(mistakes.length).toBeGreaterThanOrEqual(30))

if (update) {
  it('is updated', () => {
    const texts = mistakes.map(({ wrong }) => errorOf(wrong))
    let next = 0
    const written = page.replaceAll(MISTAKE, (all, _title, _wrong, text: string) =>
      all.replace(`\`\`\`text\n${text}\`\`\``, () => `\`\`\`text\n${texts[next++] ?? ''}\n\`\`\``),
    )
    writeFileSync(path, written)
  })
} else {
  describe.each(mistakes)('$title', ({ wrong, text, right }) => {
    it('throws the error of the page', () => {
      expect(errorOf(wrong)).toBe(text.trimEnd())
      expect(text).not.toBe('')
    })

    it('has an error that names the fix: a word that the right code has and the wrong one has not', () => {
      const known = wordsOf(wrong)
      const told = wordsOf(text)
      expect([...wordsOf(right)].filter((word) => !known.has(word) && told.has(word))).not.toEqual([])
    })

    it('can be written as the page says', () => expect(errorOf(right)).toBe(''))
  })
}
