// The example of distributed training, on two ranks.
import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'

test('examples/distributed/train.mjs has the losses of one process, with DDP and with FSDP', async () => {
  const file = fileURLToPath(new URL('../../examples/distributed/train.mjs', import.meta.url))
  const { stdout } = await promisify(execFile)(process.execPath, [file, '2'], { timeout: 60_000 })
  const losses = (who: string): readonly string[] =>
    stdout
      .split('\n')
      .filter((line) => line.startsWith(`  ${who}`))
      .map((line) => line.slice(15))
  expect(losses('2 ranks')).toHaveLength(2)
  expect(losses('2 ranks')).toEqual(losses('one process'))
  expect(stdout).toContain('blocks.1[Block] FULLY SHARDED')
})
