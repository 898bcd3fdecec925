// Two copies of the package in one program: an error says that a tensor or module is of the other copy, where both are, and what to do.
import { cpSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { describe, expect, it } from 'vitest'
import { temporaryFolder } from '../helpers/folder.ts'
import { node, root } from './node.ts'

const work = temporaryFolder('tensorfx-copies-')
cpSync(join(root, 'dist'), join(work, 'dist'), { recursive: true })
writeFileSync(join(work, 'package.json'), JSON.stringify({ type: 'module' }))
const other = pathToFileURL(join(work, 'dist')).href

/** What each of these expressions throws: `x` and `model` are of the other copy, `own` and the functions of the first. */
function messages(expressions: readonly string[]): Record<string, string> {
  return JSON.parse(
    node(`
      import { compile, nn, optim, torch } from './dist/index.js'
      import { symbolicTrace } from './dist/entries/fx.js'
      import { makeFx } from './dist/entries/aot.js'
      import { nn as otherNn, torch as otherTorch } from '${other}/index.js'
      const own = torch.ones([2, 3], { requiresGrad: true })
      const x = otherTorch.ones([2, 3])
      const model = new otherNn.Linear(3, 2)
      const messages = {}
      ${expressions.map((e) => `try { ${e}; messages[${JSON.stringify(e)}] = 'no error' } catch (error) { messages[${JSON.stringify(e)}] = error.name + ': ' + error.message }`).join('\n')}
      console.log(JSON.stringify(messages))`),
  ) as Record<string, string>
}

describe('a value of another copy of the package is named in the error of', () => {
  const tensors = [
    'own.add(x)',
    'torch.relu(x)',
    'torch.cat([own, x])',
    'own.matmul({ other: x })',
    'new nn.Linear(3, 2)(x)',
    'own.sum().backward({ gradient: x })',
    'torch.autograd.grad([x], [own])',
    'new nn.Parameter(x)',
    'compile((a) => torch.add(a, 1))(x)',
    'torch.where(own.gt(0), x, own)',
    'own.copy_(x)',
    'torch.tensor(x)',
    'torch.fromTransfer(x)',
  ]
  const modules = ['symbolicTrace(model)', 'compile(model)', 'new nn.Sequential(model)', 'new optim.SGD(model.parameters(), { lr: 1 })']

  it('calls with its tensors and modules', () => {
    const found = messages([...tensors, ...modules])
    const silent = Object.entries(found).filter(([, message]) => !message.includes('of another copy of tensorfx'))
    expect(silent).toEqual([])
    const add = found['own.add(x)'] ?? ''
    expect(add).toContain(
      `a Tensor of another copy of tensorfx (that one is 0.1.0 at ${other}/install/copies.js, this one 0.1.0 at ${pathToFileURL(root).href}`,
    )
    expect(add).toContain('npm ls tensorfx')
  })

  it('and of an older version, which has no mark', () => {
    const found = node(`
      import { torch } from './dist/index.js'
      class Tensor { shape = [2]; get [Symbol.for('tensorfx.tensor')]() { return true } }
      try { torch.relu(new Tensor()) } catch (error) { console.log(error.message) }`)
    expect(found).toContain('of another copy of tensorfx (that one is an older version, this one 0.1.0 at file:')
  })

  it('while own values, and objects that are neither, are named as before', () => {
    const found = messages(['torch.relu(new nn.Linear(2, 2))', 'torch.relu(new Map())', 'own.sum({ dim: own })'])
    expect(Object.values(found).join('\n')).not.toContain('another copy')
    expect(Object.values(found)).not.toContain('no error')
  })
})
