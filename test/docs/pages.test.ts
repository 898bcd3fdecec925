// Every example of the README, the guide and the page of errors runs, and prints what the page says. TENSORFX_UPDATE_DOCS=1 writes what is printed into the pages: read the difference before you keep it.
import { readFileSync, readdirSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { afterAll, afterEach, describe, expect, it } from 'vitest'
import { config } from 'tensorfx/compile'
import { printed, promised, removeExamples, snippetsOf, spaced } from './snippets.ts'

const update = process.env['TENSORFX_UPDATE_DOCS'] === '1'
const root = fileURLToPath(new URL('../../', import.meta.url))
const guides = readdirSync(`${root}docs/guide`).map((name) => `docs/guide/${name}`)

afterAll(removeExamples)
// Examples set what they show.
const usual = { ...config }
afterEach(() => void Object.assign(config, usual))

describe.each(['README.md', 'docs/errors.md', 'docs/security.md', ...guides])('%s', (name) => {
  const page = readFileSync(root + name, 'utf8')
  const snippets = snippetsOf(page)
  const texts = new Map<number, string>()

  it('has examples', () => expect(snippets.length).toBeGreaterThan(0))

  it.each(snippets.map((s) => [s.line, s] as const))('the example at line %i runs and prints what the page says', async (_, snippet) => {
    const lines = await printed(snippet)
    const values = promised(snippet.code)
    if (values.length > 0) expect(lines.map(spaced)).toEqual(expect.arrayContaining(values))
    const text = lines.filter((line) => !values.includes(spaced(line))).join('\n')
    if (update) {
      texts.set(snippet.line, text)
      return
    }
    expect(snippet.text?.trimEnd() ?? '').toBe(text.trimEnd())
  })

  if (!update) return
  it('is updated', () => {
    let out = page
    for (const { line, textAt } of snippets.toReversed()) {
      const text = texts.get(line) ?? ''
      out = `${out.slice(0, textAt[0])}${text === '' ? '' : `\n\`\`\`text\n${text.trimEnd()}\n\`\`\`\n`}${out.slice(textAt[1])}`
    }
    writeFileSync(root + name, out)
  })
})
