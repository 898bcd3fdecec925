// The phrases that CONTRIBUTING.md lists under "Words" are in no page, comment or message.
import { readFileSync, readdirSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'

const root = fileURLToPath(new URL('../../', import.meta.url))
const read = (name: string): string => readFileSync(root + name, 'utf8')
const filesOf = (folder: string, ending: string): string[] =>
  readdirSync(root + folder, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith(ending) && !name.includes('node_modules'))
    .map((name) => `${folder}/${name.replaceAll('\\', '/')}`)

const LIST = /<!-- words:[^]*?<!-- \/words -->/
/** The sentences that were replaced, which the section shows. */
const BEFORE = /Sentences that readers stumbled over[^]*?(?=\n## )/
const contributing = read('CONTRIBUTING.md')
const phrases = [...(LIST.exec(contributing)?.[0] ?? '').matchAll(/^\| `([^`]+)` +\|/gm)].map(([, phrase = '']) => phrase)

/** The phrases in a text, also across lines of a paragraph or a comment, with their lines. */
function found(text: string): string[] {
  return phrases.flatMap((phrase) =>
    [...text.matchAll(new RegExp(`\\b${phrase.replaceAll(' ', String.raw`(?:\s|//|\*)+`)}\\b`, 'gi'))].map(
      ({ index }) => `${phrase}, line ${text.slice(0, index).split('\n').length}`,
    ),
  )
}

describe('the words of CONTRIBUTING.md', () => {
  it('are listed', () => expect(phrases.length).toBeGreaterThan(15))

  it('are found in a text, with their line', () => {
    expect(found('fine\nIt is checked by Nobody.')).toEqual(['nobody, line 2'])
    expect(found('/**\n * softmax and its\n * kin, which is not\n * told\n */')).toEqual(['kin, line 3', 'is not told, line 3'])
    expect(found('kind, akin, a strangers_name')).toEqual([])
  })

  const pages = ['README.md', 'CHANGELOG.md', 'SECURITY.md', 'lint-rules/README.md', ...filesOf('docs', '.md')]
  it.each([
    ['the pages', pages],
    ['src', filesOf('src', '.ts')],
  ])('are not in %s', (_, files) => {
    expect(files.length).toBeGreaterThan(30)
    expect(files.flatMap((name) => found(read(name)).map((phrase) => `${name}: ${phrase}`))).toEqual([])
  })

  it('are not in CONTRIBUTING.md outside the list', () => expect(found(contributing.replace(LIST, '').replace(BEFORE, ''))).toEqual([]))
})
