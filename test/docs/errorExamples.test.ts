// docs/error-examples.md: every program throws an error of its code, with the message of the page. TENSORFX_UPDATE_DOCS=1 writes the messages: read the difference before you keep it.
import { writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { afterAll, afterEach, expect, it } from 'vitest'
import { config, TensorfxError } from 'tensorfx'
import { errorClasses } from '../../scripts/errorReference.mjs'
import { ERROR_EXAMPLE, examplesOf, pageText } from '../../scripts/docs/examples.mjs'
import { printed, removeExamples } from './snippets.ts'

const NAME = 'docs/error-examples.md'
const page = pageText(NAME)
const codes = [...page.matchAll(ERROR_EXAMPLE)].map(([, code = '', , text = '']) => ({ code, text: text.trimEnd() }))
const examples = examplesOf(page)
const update = process.env['TENSORFX_UPDATE_DOCS'] === '1'

afterAll(removeExamples)
const usual = { ...config }
afterEach(() => void Object.assign(config, usual))

/** What an example throws, up to the lines that say where, and without what depends on the tensors that other tests have. */
async function thrownBy(i: number): Promise<{ readonly code: string; readonly text: string }> {
  const example = examples[i]
  if (example === undefined) throw new Error(`the page has no example ${i}`)
  try {
    await printed(example)
  } catch (error) {
    if (!(error instanceof TensorfxError)) throw error
    const text = error.message
      .replace(/\n\s*(?:at|from|File) [^]*/, '')
      .trimEnd()
      .replace(/: \d+ of at most [^]*/, '.')
    return { code: error.code, text: `${error.name}: ${text}` }
  }
  return { code: '', text: '' }
}

it('has an example for each heading, and only codes that there are', () => {
  expect(codes).toHaveLength(examples.length)
  const known = errorClasses().map(({ code }) => code)
  for (const { code } of codes) expect(known).toContain(code)
})

it.each(codes.map(({ code, text }, i) => [code, text, i] as const))('%s', async (code, text, i) => {
  const thrown = await thrownBy(i)
  expect(thrown.code).toBe(code)
  if (!update) expect(thrown.text).toBe(text)
})

if (update)
  it('is updated', async () => {
    const texts: string[] = []
    // oxlint-disable-next-line no-await-in-loop -- examples change the configuration
    for (let i = 0; i < examples.length; i++, Object.assign(config, usual)) texts.push((await thrownBy(i)).text)
    let next = 0
    const written = page.replaceAll(
      ERROR_EXAMPLE,
      (_, code: string, source: string) => `## ${code}\n\n\`\`\`js\n${source}\`\`\`\n\n\`\`\`text\n${texts[next++] ?? ''}\n\`\`\`\n`,
    )
    writeFileSync(fileURLToPath(new URL(`../../${NAME}`, import.meta.url)), written)
  })
