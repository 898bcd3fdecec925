// What Node prints of an error that nothing catches: the first place in a file, and the first code, are the program's.
import { execFileSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { temporaryFolder } from '../helpers/folder.ts'
import { root } from './node.ts'

const folder = temporaryFolder('tensorfx-uncaught-')

/** The standard error of a program, which fails. */
function printedBy(name: string, code: string, flags: readonly string[] = []): string {
  const file = join(folder, name)
  writeFileSync(file, code.replace("'tensorfx'", JSON.stringify(`file://${root}dist/index.js`)))
  try {
    execFileSync(process.execPath, [...flags, file], { encoding: 'utf8', stdio: 'pipe' })
  } catch (error) {
    return String(Reflect.get(Object(error), 'stderr'))
  }
  throw new Error('the program did not fail')
}

const MODEL = `import { nn, torch } from 'tensorfx'
const model = new nn.Sequential(new nn.Sequential(new nn.Linear(3, 4), new nn.Linear(5, 2)))
function step(x) {
  return model(x).sum()
}
`

test.each([
  ['thrown.mjs', `${MODEL}step(torch.ones([2, 3]))`],
  ['rejected.mjs', `${MODEL}await Promise.resolve().then(() => step(torch.ones([2, 3])))`],
])('%s', (name, code) => {
  for (const flags of [[], ['--enable-source-maps']]) {
    const text = printedBy(name, code, flags)
    const [place] = /[\w./-]+\.(?:mjs|js|ts):\d+/.exec(text) ?? []
    expect(place?.replace(/^\/+/, '/')).toBe(join(folder, `${name}:4`))
    expect(text).toContain('> 4 |   return model(x).sum()\n')
    expect(text).toMatch(/ShapeError: torch\.nn\.functional\.linear: input has 4 features/)
  }
})
