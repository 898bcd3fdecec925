// docs/error-examples.md: every program throws an error of its code, with the message of the page. TENSORFX_UPDATE_DOCS=1 writes the messages: read the difference before you keep it.
import { writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { afterAll, afterEach, beforeEach, expect, it } from 'vitest'
import { config, TensorfxError } from 'tensorfx'
import { fileStore, setFileStore, setLogSink } from 'tensorfx/debug'
import { errorClasses } from '../../scripts/errorReference.mjs'
import { ERROR_EXAMPLE, ERROR_WITHOUT_EXAMPLE, examplesOf, pageText } from '../../scripts/docs/examples.mjs'
import { printed, removeExamples } from './snippets.ts'

const NAME = 'docs/error-examples.md'
const page = pageText(NAME)
const codes = [...page.matchAll(ERROR_EXAMPLE)].map(([, code = '', , text = '']) => ({ code, text: text.trimEnd() }))
const examples = examplesOf(page)
const update = process.env['TENSORFX_UPDATE_DOCS'] === '1'

afterAll(removeExamples)
const usual = { ...config }
const store = fileStore()
// Examples set what they show, and what the debugger logs is not the examples' own.
beforeEach(() => setLogSink(() => {}))
afterEach(() => {
  Object.assign(config, usual)
  setFileStore(store)
  setLogSink(null)
})

/** What an example throws, up to the lines that say where, and without what depends on other tests of the process: tensors, graphs compiled before, backends that they registered. */
async function thrownBy(i: number): Promise<{ readonly code: string; readonly text: string }> {
  const example = examples[i]
  if (example === undefined) throw new Error(`the page has no example ${i}`)
  try {
    await printed(example)
  } catch (error) {
    if (!(error instanceof TensorfxError)) throw error
    const text = error.message
      .replace(/\n(?:\s*(?:at|from|File) |Minifier script written to )[^]*/, '')
      .trimEnd()
      .replace(/: \d+ of at most [^]*/, '.')
      .replace(/__compiled_fn_\d+/, '__compiled_fn_0')
      .replace(/(Registered are .*?inductor)\b.*?(?=\. Register your own)/, '$1')
    return { code: error.code, text: `${error.name}: ${text}` }
  }
  return { code: '', text: '' }
}

it('has a program for each code, or says why there is none', () => {
  expect(codes).toHaveLength(examples.length)
  const without = [...page.matchAll(ERROR_WITHOUT_EXAMPLE)].map(([, code = '']) => code)
  expect([...codes.map(({ code }) => code), ...without].toSorted()).toEqual(errorClasses().map(({ code }) => code))
})

const texts: string[] = []

it.each(codes.map(({ code, text }, i) => [code, text, i] as const))('%s', async (code, text, i) => {
  const thrown = await thrownBy(i)
  expect(thrown.code).toBe(code)
  texts[i] = thrown.text
  if (!update) expect(thrown.text).toBe(text)
})

if (update)
  it('is updated', () => {
    let next = 0
    const written = page.replaceAll(
      ERROR_EXAMPLE,
      (_, code: string, source: string) => `## ${code}\n\n\`\`\`js\n${source}\`\`\`\n\n\`\`\`text\n${texts[next++] ?? ''}\n\`\`\`\n`,
    )
    writeFileSync(fileURLToPath(new URL(`../../${NAME}`, import.meta.url)), written)
  })
