// How errors show their stack traces: the frames of the program, then those of the host.
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { temporaryFolder } from '../helpers/folder.ts'
import { programFirst } from '../../src/provenance/index.ts'

const folder = temporaryFolder('program-first-')
const file = join(folder, 'model.ts')
writeFileSync(file, 'const x = 1\nx.relu()\n')

const host = ['    at run (node:internal/a:1:1)', '    at tick (node:internal/b:2:2)', '    at end (node:internal/c:3:3)']
const program = ['    at inner (/nowhere/a.ts:1:2)', '    at outer (/nowhere/b.ts:3:4)', '    at main (/nowhere/c.ts:5:6)']
const mixed = [host[0], program[0], host[1], program[1], host[2], program[2]].join('\n')
const WITHIN = '  within tensorfx and the host:'

test('the frames of the program come first, each kind in its order', () => {
  expect(programFirst(mixed, 10).split('\n')).toEqual([...program, WITHIN, ...host])
})

test('of each kind at most the limit is shown', () => {
  expect(programFirst(mixed, 2).split('\n')).toEqual([...program.slice(0, 2), WITHIN, ...host.slice(0, 2)])
})

test('where all frames are of the program, nothing is said of others', () => {
  expect(programFirst(program.join('\n'), 10).split('\n')).toEqual(program)
})

test('without a frame of the program the frames stay, up to the limit', () => {
  expect(programFirst(host.join('\n'), 2).split('\n')).toEqual(host.slice(0, 2))
})

test('the code around the innermost line of the program stands before, as its file can be read', () => {
  const line = `    at f (${file}:2:3)`
  expect(programFirst([host[0], line].join('\n'), 10).split('\n')).toEqual([
    '',
    '  1 | const x = 1',
    '> 2 | x.relu()',
    '    |   ^',
    '  3 | ',
    '',
    line,
    WITHIN,
    host[0],
  ])
})
