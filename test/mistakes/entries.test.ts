// tensorfx/core names the import of operators that are not loaded. Beside tensorfx, in any order, all are, so its names say what else to write.
import { torch } from 'tensorfx'
import 'tensorfx/core'
import { expect, test } from 'vitest'

test("tensorfx/core changes nothing about names that have a method under another name, as 'set' and 'concat' do", () => {
  const x = torch.ones([2]) as unknown as Record<string, () => void>
  expect(() => x['set']?.()).toThrow('x.set does not exist here: write x.select(0, i).copy_(value)')
  expect(() => x['concat']?.()).toThrow('x.concat does not exist here: write torch.cat([x, y], dim)')
})
