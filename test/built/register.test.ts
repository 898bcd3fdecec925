// node --import tensorfx/register: the modules of a program are rewritten as they are loaded.
import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'
import { removeFolder } from '../helpers/folder.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))

const PROGRAM = `import { torch } from 'tensorfx'
import { symbolicTrace } from 'tensorfx/fx'
import { helper } from './helper.mjs'

const limit = 3
const assertSize = (x) => {
  if (!(x.size(0) === limit)) throw new Error('three, please')
  return helper(x)
}
const gm = symbolicTrace(assertSize)
console.log([...gm.graph.nodes].map((node) => node.name).join(' '))
console.log(gm(torch.ones([3])).toArray().join())
try {
  symbolicTrace((x) => {
    if (x.sum().gt(0)) return x
    return x.neg()
  })
} catch (error) {
  console.log(error.name, /program\\.mjs:15/.test(error.message))
}
`

it('conditions of all modules of a program are seen, with closures and the lines of the source', () => {
  const folder = mkdtempSync(join(tmpdir(), 'tensorfx-register-'))
  try {
    mkdirSync(join(folder, 'node_modules'))
    symlinkSync(root, join(folder, 'node_modules', 'tensorfx'), 'dir')
    writeFileSync(join(folder, 'program.mjs'), PROGRAM)
    writeFileSync(join(folder, 'helper.mjs'), "export const helper = (x) => {\n  console.assert(x.dim() === 1, 'rank')\n  return x.neg()\n}\n")
    const output = execFileSync(process.execPath, ['--import', 'tensorfx/register', 'program.mjs'], { cwd: folder, encoding: 'utf8' })
    expect(output.trim().split('\n')).toEqual(['x size eq _assert dim eq_1 _assert_1 neg output', '-1,-1,-1', 'TraceError true'])
  } finally {
    removeFolder(folder)
  }
})
