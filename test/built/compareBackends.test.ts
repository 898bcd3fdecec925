// The repro of two backends that differ runs by itself, in a folder from which no package can be imported.
import { execFileSync } from 'node:child_process'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { expect, it } from 'vitest'
import { temporaryFolder } from '../helpers/folder.ts'
import { node, root } from './node.ts'

const work = temporaryFolder('tensorfx-compare-')

it('a difference between two backends ends in a folder that shows it again in a fresh process', () => {
  const url = (path: string): string => pathToFileURL(join(root, 'dist', path)).href
  const printed = node(
    `import { fx, torch } from '${url('index.js')}'
    import { compareBackends } from '${url('entries/debug.js')}'
    const gm = fx.symbolicTrace((x) => torch.cos(torch.relu(torch.sin(x)).mul(2)))
    const result = await compareBackends(gm, [torch.tensor([0.5, -0.5])], { backends: ['relu_accuracy_error_TESTING_ONLY'] })
    const { gm: small, path } = await result.minify('relu_accuracy_error_TESTING_ONLY', { directory: 'repro' })
    console.log([...small.graph.nodes].map((n) => n.name).join(), path)`,
    { cwd: work },
  )
  expect(printed).toMatch(/^\w+,relu,output repro\/compare\.mjs$/)
  expect(readdirSync(join(work, 'repro')).toSorted()).toEqual(['compare.mjs', 'graph.safetensors', 'inputs.safetensors'])
  let output = ''
  try {
    execFileSync(process.execPath, [join(work, 'repro/compare.mjs')], { cwd: work, encoding: 'utf8', stdio: 'pipe' })
  } catch (error) {
    output = String((error as { readonly stdout: string }).stdout)
  }
  expect(output).toMatch(/^relu +torch\.relu +float32 \[\d*\] +[\d.e+-]+ \*$/m)
  expect(output).toMatch(/^relu_accuracy_error_TESTING_ONLY: 'relu' differs \(error .*; found alone\)$/m)
})
