// The pages of docs/examples: each belongs to a folder of examples/, names its files, and shows code that is there.
import { readFileSync, readdirSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'

const at = (path: string): string => fileURLToPath(new URL(`../../${path}`, import.meta.url))
const names = readdirSync(at('docs/examples')).map((file) => file.replace(/\.md$/, ''))
const flat = (code: string): string => code.replaceAll(/\s+/g, ' ').trim()

it('there is a page for each of the examples that bring a model', () =>
  expect(names.toSorted()).toEqual(['families', 'gpt', 'lstm', 'resnet18', 'unet', 'vit']))

describe.each(names)('docs/examples/%s.md', (name) => {
  const page = readFileSync(at(`docs/examples/${name}.md`), 'utf8')
  const files = readdirSync(at(`examples/${name}`))

  /** An example is a program, or a page of a browser. */
  const isPage = files.includes('index.html')

  it('names the command and every file of the example', () => {
    const [, program] = new RegExp(`\`node examples/${name}/(\\w+\\.mjs)`).exec(page) ?? []
    if (isPage) expect(page).toContain(`\`npx vite examples/${name}\``)
    else expect(files).toContain(program)
    expect([...page.matchAll(/^\| `([\w.]+)`/gm)].map(([, file]) => file).toSorted()).toEqual(files.toSorted())
    expect(readFileSync(at('docs/README.md'), 'utf8')).toContain(`(examples/${name}.md)`)
  })

  it('shows code that stands in these files', () => {
    const sources = flat(files.map((file) => readFileSync(at(`examples/${name}/${file}`), 'utf8')).join('\n'))
    const blocks = [...page.matchAll(/```js\n([^]*?)```/g)].map(([, code = '']) => flat(code))
    expect(blocks.length).toBeGreaterThan(0)
    for (const block of blocks) expect(sources).toContain(block)
  })

  it.skipIf(isPage)('shows what the program prints', () => {
    const [, output = ''] = /```text\n([^]*?)```/.exec(page) ?? []
    const expected: Readonly<Record<string, RegExp>> = { families: /^gpt2 .* difference /m, resnet18: /^eager: .*\ncompiled: /m }
    expect(output).toMatch(expected[name] ?? /^step 1: loss /m)
  })
})
