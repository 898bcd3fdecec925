// Lists and dictionaries of parameters, and other dtypes.
import { expect, test } from 'vitest'
import { nn, torch } from 'tensorfx'
import type { Tensor } from 'tensorfx'

const values = (t: unknown): number[] => Array.from((t as Tensor).detach().contiguous().toTypedArray(), Number)

test('parameter containers register, count, copy and find their parameters', () => {
  class Net extends nn.Module {
    list = new nn.ParameterList([torch.ones([2]), new nn.Parameter(torch.zeros([3]))])
    dict = new nn.ParameterDict({ scale: torch.ones([2]) })
    override forward(x: Tensor): Tensor {
      return x.mul(this.list.at(0)).mul(this.dict.get('scale'))
    }
  }
  const net = new Net()
  expect([...net.namedParameters()].map(([name]) => name)).toEqual(['list.0', 'list.1', 'dict.scale'])
  expect([net.list.length, net.dict.size, net.list.at(-1).shape, net.dict.has('scale')]).toEqual([2, 1, [3], true])
  expect(net.deepCopy().list.at(0)).not.toBe(net.list.at(0))
  expect(values(net(torch.tensor([1, 2])))).toEqual([1, 2])
})

test('to converts floating-point parameters and buffers; shared ones stay shared', () => {
  const shared = new nn.Linear(2, 2)
  const net = new nn.Sequential(shared, new nn.BatchNorm1d(2), shared).double()
  expect([...net.stateDict()].map(([name, t]) => [name, (t as Tensor).dtype])).toContainEqual(['1.numBatchesTracked', 'int64'])
  expect([shared.weight.dtype, shared.weight.requiresGrad, shared.weight.isParameter]).toEqual(['float64', true, true])
  expect(net(torch.ones([3, 2], { dtype: 'float64' })).dtype).toBe('float64')
  expect((net.half().at(0) as nn.Linear).weight.dtype).toBe('float16')
})
