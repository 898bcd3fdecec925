// TENSORFX_DISTRIBUTED_DEBUG=detail: the first collective that ranks did not call alike, with the lines of the program.
import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { array, assert, boolean, constantFrom, nat, property, record } from 'fast-check'
import { describe, expect, test } from 'vitest'
import { MemorySlots } from '../../src/distributed/failures/slots.ts'
import { History, KEPT, SLOT_BYTES } from '../../src/distributed/history.ts'
import { bundledCommand } from '../../scripts/bundled.mjs'
import { scenario, worlds } from './worlds.ts'
import { turn } from '../helpers/rotation.ts'

const SCRIPT = scenario('detail')

/** The line of the program that ends with a comment. */
const lineWith = (comment: string): number =>
  readFileSync(SCRIPT, 'utf8')
    .split('\n')
    .findIndex((line) => line.endsWith(`// ${comment}`)) + 1

function run(world: string, way: string, level: string): Promise<string> {
  return new Promise((resolve) => {
    execFile(
      process.execPath,
      [bundledCommand, 'run', '-n', '3', '--backend', world, SCRIPT, way],
      { timeout: 60_000, env: { ...process.env, TENSORFX_DISTRIBUTED_DEBUG: level } },
      (_error, stdout, stderr) => resolve(`${stdout}${stderr}`.replaceAll(/^\[\d\] /gm, '')),
    )
  })
}

describe.each(turn(worlds))('on %s', (world) => {
  test('a mismatch names what each rank called, and where', async () => {
    const output = await run(world, 'mismatch', 'DETAIL')
    expect(output).toContain("The first collective that differs is number 151 of group '0':\n")
    for (const [rank, what, comment] of [
      [0, 'allreduce(sum, float32[4])', 'others here'],
      [1, 'allreduce(sum, float32[4])', 'others here'],
      [2, 'broadcast(float32[4], root 0)', 'rank 2 here'],
    ] as const)
      expect(output).toMatch(
        new RegExp(`^  rank ${rank}: ${what.replaceAll(/[()[\]]/g, '\\$&')} at \\S*detail\\.mjs:${lineWith(comment)}:\\d+$`, 'm'),
      )
  })

  test('a hang names the last collective of the ranks that do not come', async () => {
    const output = await run(world, 'hang', 'detail')
    // Rank 0 and rank 1 wait for each other in different groups; either may speak first.
    const first = output.split('\n').slice(0, 8).join('\n')
    if (first.startsWith('rank 1 of 3')) {
      expect(first).toMatch(
        /^ {2}rank 0: has not called it; its last is allreduce\(sum, float32\[3\]\), number 1 of group '1', at \S*detail\.mjs:\d+:\d+$/m,
      )
      expect(first).toMatch(new RegExp(`^ {2}rank 1: barrier\\(\\) at \\S*detail\\.mjs:${lineWith('rank 1 waits here')}:\\d+$`, 'm'))
      expect(first).toMatch(/^ {2}rank 2: has not called it; its last is allreduce\(sum, float32\[2\]\), number 1 of group '0', at/m)
    } else {
      expect(first).toMatch(
        new RegExp(`^ {2}rank 0: allreduce\\(sum, float32\\[3\\]\\) at \\S*detail\\.mjs:${lineWith('the last of rank 0')}:\\d+$`, 'm'),
      )
      expect(first).toMatch(/^ {2}rank 1: has not called it; its last is barrier\(\), number 2 of group '0', at/m)
    }
  })

  test('without it nothing is recorded', async () => {
    expect(await run(world, 'mismatch', 'OFF')).not.toContain('The first collective that differs')
  })
})

test('the first difference of drawn histories is that of the whole lists, while it is among the records', () => {
  const calls = array(record({ group: constantFrom('0', '1'), what: constantFrom('a', 'b', 'b', 'b') }), { maxLength: 2 * KEPT })
  assert(
    property(calls, nat({ max: 2 * KEPT }), boolean(), (list, at, isMissing) => {
      // Rank 1 does what rank 0 does, but for one call.
      const other = isMissing ? list.slice(0, at) : list.map((call, i) => (i === at ? { ...call, what: 'c' } : call))
      const memory = new Uint8Array(2 * KEPT * SLOT_BYTES)
      const part = (rank: number): Uint8Array => memory.subarray(rank * KEPT * SLOT_BYTES, (rank + 1) * KEPT * SLOT_BYTES)
      const numbered = [list, other].map((own, rank) => {
        const history = new History(new MemorySlots(rank, SLOT_BYTES, part))
        const sequences = new Map<string, number>()
        return own.map(({ group, what }) => {
          const sequence = (sequences.get(group) ?? 0) + 1
          sequences.set(group, sequence)
          history.add(group, sequence, what)
          return { group, sequence, what }
        })
      })
      const reader = new History(new MemorySlots(0, SLOT_BYTES, part))
      for (const name of ['0', '1']) {
        const whats = numbered.map((own) => own.filter(({ group }) => group === name).map(({ what }) => what))
        const length = Math.max(...whats.map(({ length: own }) => own))
        const first = Array.from({ length }, (_, i) => i).find((i) => whats[0]?.[i] !== whats[1]?.[i])
        const text = reader.difference({ name, ranks: [0, 1] })
        // Where it is no more among the last hundred of both, a later difference may be named instead, or none.
        const isKept = numbered.every((own) => own.length < KEPT)
        if (first === undefined) expect(text).toBe('')
        else if (isKept) expect(text.split('\n')[0]).toBe(`The first collective that differs is number ${first + 1} of group '${name}':`)
        else if (text !== '') expect(Number(/number (\d+)/.exec(text)?.[1])).toBeGreaterThanOrEqual(first + 1)
      }
    }),
    { numRuns: 60 },
  )
})
