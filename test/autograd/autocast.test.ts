// torch.autocast: what is cast, what is cast once, scopes, functions with a backward of their own, compile, checkpoint, and training.
import { readFileSync } from 'node:fs'
import { afterEach, describe, expect, it } from 'vitest'
import { compile, fx, nn, optim, torch } from 'tensorfx'
import type { DType, Tensor } from 'tensorfx'
import { checkpoint } from 'tensorfx/autograd'
import { RecordMode, withMode } from 'tensorfx/dispatch'

const misc = JSON.parse(readFileSync(new URL('../goldens/around/autocast-misc.json', import.meta.url), 'utf8'))
const half = { dtype: 'bfloat16' } as const
const state = (): unknown[] => [torch.isAutocastEnabled(), torch.getAutocastDtype(), torch.isAutocastCacheEnabled()]

afterEach(() => expect(state(), 'what a test left behind').toEqual([false, 'bfloat16', true]))

describe('scopes', () => {
  it('nest, and end with their function or block, also by an error', () => {
    expect(state()).toEqual(misc.state_outside)
    torch.autocast({}, () => {
      expect(state()).toEqual(misc.state_default)
      torch.autocast({ dtype: 'float16', cacheEnabled: false }, () => {
        expect(state()).toEqual(misc.state_nested)
        torch.autocast({ enabled: false }, () => expect(state()).toEqual(misc.state_disabled))
      })
      expect(state()).toEqual(misc.state_restored)
    })
    expect(state()).toEqual(misc.state_after)
    const block = (): unknown => {
      using _ = torch.autocast({ dtype: 'float16' })
      return state()
    }
    expect(block()).toEqual([true, 'float16', true])
    torch.autocast({ dtype: 'float16' })
    expect(() => torch.autocast({}, () => torch.ones([2]).mm(torch.ones([2, 2])))).toThrow('mm')
  })

  it('refuse other dtypes, devices and a function first (difference: autocast-dtypes)', () => {
    expect(() => torch.autocast({ dtype: 'float32' as never })).toThrow(
      "torch.autocast: option 'dtype' must be 'bfloat16' or 'float16', got 'float32'.",
    )
    expect(() => torch.autocast('cuda' as never)).toThrow('it takes no device, and computes where tensors are; write torch.autocast({ dtype')
    expect(() => torch.autocast((() => 1) as never)).toThrow('options come first')
    expect(() => torch.autocast({ dtpye: 'float16' } as never)).toThrow("did you mean 'dtype'?")
  })
})

describe('operators', () => {
  const [x, b] = [torch.ones([2, 2]), torch.ones([2, 2], { dtype: 'bfloat16' })]

  it('run in the dtypes that PyTorch gives', () => {
    const { out_arg: want } = misc
    torch.autocast(half, () => {
      expect(x.clone().addmm_(x, x).dtype).toBe(want.inplace_addmm_)
      expect(b.mm(x).dtype).toBe(want.mm_bf16_f32)
      expect(() => x.to('float64').mm(x)).toThrow(/dtype/)
      expect(x.softmax(0, { dtype: 'float64' }).dtype).toBe(want.softmax_dtype)
      expect([b.sum().dtype, b.add(x).dtype]).toEqual([want.sum_bf16, want.add_bf16_f32])
      expect(nn.functional.binaryCrossEntropy(b.mul(0.5), x).dtype).toBe(want.bce)
      expect(torch.ones([2, 2], { dtype: 'int64' }).mm(torch.ones([2, 2], { dtype: 'int64' })).dtype).toBe(want.int_mm)
    })
  })

  it('cast a weight once, and again after a write', () => {
    const weight = torch.ones([2, 2]).requiresGrad_()
    /** What stands before the weight on the tape of three products: one cast, or three. */
    const casts = (cacheEnabled: boolean): number =>
      torch.autocast({ ...half, cacheEnabled }, () => {
        const nodes = [1, 2, 3].map(() => x.mm(weight).gradFn as unknown as { readonly nextFunctions: readonly (readonly [object | null])[] })
        return new Set(nodes.flatMap(({ nextFunctions }) => nextFunctions.flatMap(([node]) => node ?? []))).size
      })
    expect([casts(true), casts(false)]).toEqual([1, 3])
    torch.autocast(half, () => {
      x.mm(weight)
      torch.noGrad(() => void weight.fill_(2))
      expect(x.mm(weight).toArray()).toEqual([
        [4, 4],
        [4, 4],
      ])
      expect(torch.noGrad(() => x.mm(weight)).requiresGrad).toBe(false)
      expect(x.mm(weight).requiresGrad).toBe(true)
    })
  })

  it('gradients have the dtype of the parameters', () => {
    const model = new nn.Sequential(new nn.Conv2d(1, 2, 3), new nn.Flatten(), new nn.Linear(8, 2))
    const loss = torch.autocast(half, () => {
      const y = model(torch.randn([3, 1, 4, 4]))
      expect(y.dtype).toBe('bfloat16')
      return nn.functional.crossEntropy(y, torch.tensor([0, 1, 0], { dtype: 'int64' }))
    })
    expect(loss.dtype).toBe('float32')
    loss.backward()
    expect([...model.parameters()].map((parameter) => parameter.grad?.dtype)).toEqual(['float32', 'float32', 'float32', 'float32'])
  })

  it('without autocast nothing is cast', () => {
    const mode = new RecordMode()
    withMode(mode, () => x.mm(x))
    expect(mode.calls.map(({ op }) => op.name)).toEqual(['mm'])
    const inside = new RecordMode()
    torch.autocast(half, () => withMode(inside, () => x.mm(x)))
    expect(inside.calls.map(({ op }) => op.name)).toEqual(['to_copy', 'to_copy', 'mm'])
  })
})

/** What a Function uses of its context. */
interface Context {
  saveForBackward(...tensors: Tensor[]): void
  readonly savedTensors: readonly Tensor[]
}

describe('torch.amp.customFwd and customBwd', () => {
  for (const castInputs of [null, 'float32', 'bfloat16'] as const)
    for (const dtype of ['float32', 'bfloat16'] as const)
      it(`cast to ${castInputs ?? 'nothing'}, of ${dtype}, as PyTorch`, () => {
        const want = misc[`custom_cast_${castInputs === null ? 'None' : `torch.${castInputs}`}_${dtype}`]
        const log: unknown[] = []
        class Product extends torch.autograd.Function {
          static override forward = torch.amp.customFwd(
            (ctx: Context, a: Tensor, w: Tensor) => {
              log.push([a.dtype, torch.isAutocastEnabled()])
              ctx.saveForBackward(a, w)
              const out = a.mm(w)
              log.push(out.dtype)
              return out
            },
            { castInputs },
          )
          static override backward = torch.amp.customBwd((ctx: Context, grad: Tensor) => {
            const [a = grad, w = grad] = ctx.savedTensors
            log.push([grad.dtype, torch.isAutocastEnabled()])
            const grads = [grad.mm(w.t()), a.t().mm(grad)]
            log.push(grads.map((one) => one.dtype))
            return grads
          })
        }
        const a = torch.ones([2, 2], { dtype: dtype as DType }).requiresGrad_()
        const w = torch.ones([2, 2]).requiresGrad_()
        const out = torch.autocast(half, () => Product.apply(a, w)) as Tensor
        out.sum().backward()
        expect({ out: out.dtype, log, grads: [a.grad?.dtype, w.grad?.dtype] }).toEqual(want)
      })
})

describe('with', () => {
  const model = (): nn.Sequential => {
    torch.manualSeed(0)
    return new nn.Sequential(new nn.Linear(4, 8), new nn.Tanh(), new nn.Linear(8, 1))
  }
  const x = torch.linspace(-1, 1, 24).view(6, 4)

  it('compile, the graph has the casts, and a call without autocast none', () => {
    const net = model()
    const f = compile((input: Tensor) => torch.autocast(half, () => net(input)))
    const g = compile((input: Tensor) => net(input))
    const eager = torch.autocast(half, () => net(x))
    for (let i = 0; i < 3; i++) {
      expect([f(x).dtype, f(x).toArray()]).toEqual(['bfloat16', eager.toArray()])
      const under = torch.autocast(half, () => g(x))
      expect([under.dtype, g(x).dtype]).toEqual(['bfloat16', 'float32'])
    }
  })

  it('a symbolic trace records what the program calls, and runs under autocast', () => {
    const gm = fx.symbolicTrace(model())
    expect([torch.autocast(half, () => gm.call(x)).dtype, gm.call(x).dtype]).toEqual(['bfloat16', 'float32'])
  })

  it('checkpoint computes again under the autocast of the first time', () => {
    const gradients = (part: (input: Tensor, net: nn.Sequential) => Tensor): unknown => {
      const net = model()
      torch
        .autocast(half, () => part(x, net))
        .float()
        .sum()
        .backward()
      return [...net.parameters()].map((parameter) => parameter.grad?.toArray())
    }
    expect(gradients((input, net) => checkpoint((a: Tensor) => net(a), input.detach().requiresGrad_()))).toEqual(
      gradients((input, net) => net(input)),
    )
  })

  it.each(['bfloat16', 'float16'] as const)('a training in %s has losses within 2% of those in float32', (dtype) => {
    const target = x.sum({ dim: 1, keepdim: true }).sin()
    const train = (mixed: boolean): number[] => {
      const net = model()
      const optimizer = new optim.Adam(net.parameters(), { lr: 0.03 })
      const scaler = new torch.amp.GradScaler({ enabled: mixed && dtype === 'float16' })
      return Array.from({ length: 60 }, () => {
        optimizer.zeroGrad()
        const forward = (): Tensor => nn.functional.mseLoss(net(x).float(), target)
        const loss = mixed ? torch.autocast({ dtype }, forward) : forward()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        return loss.item()
      })
    }
    const [exact, mixed] = [train(false), train(true)]
    expect(exact.at(-1)).toBeLessThan((exact[0] ?? 0) / 3)
    exact.forEach((loss, i) => expect(Math.abs((mixed[i] ?? NaN) - loss)).toBeLessThan(0.02 * (exact[0] ?? 0)))
  })
})
