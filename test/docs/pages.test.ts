// Every example of the README, the guides and the page of errors runs, and prints what the page says. TENSORFX_UPDATE_DOCS=1 writes the output into the pages: read the
// difference before you keep it. test/built/examples.test.ts compiles the same examples.
import { writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { afterAll, afterEach, describe, expect, it } from 'vitest'
import { config } from 'tensorfx/compile'
import { examplesOf, pageText, pages } from '../../scripts/docs/examples.mjs'
import { printed, promised, removeExamples, spaced } from './snippets.ts'

const update = process.env['TENSORFX_UPDATE_DOCS'] === '1'
const root = fileURLToPath(new URL('../../', import.meta.url))

afterAll(removeExamples)
// Examples set what they show.
const usual = { ...config }
afterEach(() => void Object.assign(config, usual))

describe.each(pages)('%s', (name) => {
  const page = pageText(name)
  const snippets = examplesOf(page)
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
