// tensorfx/ops and tensorfx/dispatch, as programs import them.
import { expect, test } from 'vitest'
import { torch } from 'tensorfx'
import { FakeTensorMode, RecordMode, withMode } from 'tensorfx/dispatch'
import { allOps, opByName, opOf } from 'tensorfx/ops'

const { tensor } = torch

test('the table finds an operator by name and by function', () => {
  const relu = opByName('torch.relu')
  expect(relu?.schema.text).toBe('relu(Tensor self) -> Tensor')
  expect(opOf(relu?.fn)).toBe(relu)
  expect(allOps()).toContain(relu)
  expect(opByName('torch.rleu')).toBeUndefined()
})

test('modes see the operators that run under them', () => {
  const record = new RecordMode()
  const x = tensor([-1, 2])
  expect(withMode(record, () => x.relu().add(1).toArray())).toEqual([1, 3])
  expect(record.names).toEqual(['torch.relu', 'torch.add'])
  const fake = withMode(new FakeTensorMode(), () => x.relu())
  expect([fake.isFake, fake.shape]).toEqual([true, [2]])
})
