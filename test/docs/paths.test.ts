// Paths of files that pages name, in code as in text: they are there, and in the package, which carries the pages. `npm run check:pack` follows the links.
import { existsSync, readFileSync, readdirSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'

const root = fileURLToPath(new URL('../../', import.meta.url))
const pages = [
  'README.md',
  ...['docs', 'docs/guide', 'docs/examples'].flatMap((folder) => readdirSync(root + folder).map((name) => `${folder}/${name}`)),
].filter((name) => name.endsWith('.md'))
const { files }: { readonly files: readonly string[] } = JSON.parse(readFileSync(`${root}package.json`, 'utf8'))

/** Whether the package has a file. Of patterns with a star only the end is variable. */
const isPacked = (path: string): boolean =>
  files.some(
    (one) =>
      path === one ||
      path.startsWith(`${one}/`) ||
      (one.includes('*') && path.startsWith(one.slice(0, one.indexOf('*'))) && !path.slice(one.indexOf('*')).includes('/')),
  )

const PATH = /(?<![\w./-])(?:examples|docs|lint-rules)\/[\w/-]+(?:\.\w+)+(?![\w/])/g

describe.each(pages)('%s', (page) => {
  it('names files that are there, and in the package', () => {
    const named = new Set(
      readFileSync(root + page, 'utf8')
        .replaceAll(/\]\([^)]*\)/g, ']')
        .match(PATH),
    )
    for (const path of named) {
      expect(existsSync(root + path), path).toBe(true)
      expect(isPacked(path), path).toBe(true)
    }
  })
})
