// docs/security.md names the test that each promise has: the tests exist.
import { existsSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'

const root = fileURLToPath(new URL('../../', import.meta.url))
const page = readFileSync(`${root}docs/security.md`, 'utf8')
const rows = [...page.matchAll(/^\| .* \| `(test\/[\w/.]+)`: (.*?) *\|$/gm)].map(
  ([, file = '', title = '']) => [file, title.replaceAll('\\', '')] as const,
)

describe('docs/security.md', () => {
  it('has a test for each promise', () => expect(rows.length).toBeGreaterThan(25))

  it.each(rows)('%s has the test: %s', (file, title) => {
    expect(existsSync(root + file), file).toBe(true)
    const source = readFileSync(root + file, 'utf8')
    const at = source.indexOf(title)
    expect(at, title).toBeGreaterThanOrEqual(0)
    // A title, or a row of a table of cases; not a comment.
    expect(source.slice(source.lastIndexOf('\n', at), at)).toMatch(/['"`]/)
  })
})
