// Short-time Fourier transforms, and their inverse: transforms of overlapping frames of a signal, each times a window.
import { ArgumentError, DTypeError, ShapeError } from '../../errors/index.ts'
import { isComplexDType, realDType } from '../../kernels/index.ts'
import { formatShape, sizeEq } from '../../tensor/index.ts'
import type { Tensor } from '../../tensor/index.ts'
import { viewAsReal } from '../complex/views.ts'
import { arange, fullOf } from '../create/creation.ts'
import { defineOp } from '../define/defineOp.ts'
import type { Op } from '../generated/signatures.ts'
import { pad } from '../nn/pad.ts'
import type { PadMode } from '../nn/pad.ts'
import { constantPadNd } from '../join/join.ts'
import { add, div, mul } from '../pointwise/arithmetic.ts'
import { square } from '../pointwise/unary.ts'
import { amin } from '../reduction/extremes.ts'
import { sizeAt } from '../shared/shapes.ts'
import { unfold } from '../view/arrange.ts'
import { transpose } from '../view/permute.ts'
import { indexAdd } from '../view/positions.ts'
import { reshape, squeeze, unsqueeze } from '../view/reshape.ts'
import { narrow } from '../view/slicing.ts'
import { expand } from '../view/windows.ts'
import { fft, ifft, irfft, rfft } from './oneDimension.ts'

/** The frames of a signal: how long they are, and how far apart. */
interface Frames {
  readonly size: number
  readonly hop: number
  /** The window of a whole frame, null for ones. */
  readonly window: Tensor | null
}

function framesOf(op: string, size: number, hopLength: number | null, winLength: number | null, window: Tensor | null): Frames {
  const [hop, length] = [hopLength ?? Math.floor(size / 4), winLength ?? size]
  if (size < 1) throw new ArgumentError(`${op}: argument 'nFft' must be at least 1, got ${size}.`)
  if (hop < 1)
    throw new ArgumentError(`${op}: argument 'hopLength' must be at least 1, got ${hop}${hopLength === null ? ', a quarter of nFft' : ''}.`)
  if (length < 1 || length > size) throw new ArgumentError(`${op}: argument 'winLength' must be from 1 to nFft, ${size}, got ${length}.`)
  if (window !== null && (window.ndim !== 1 || !sizeEq(window.symNumel, length)))
    throw new ShapeError(`${op}: argument 'window' must have shape [${length}], that of winLength, got ${formatShape(window.symSizes)}.`)
  if (length === size) return { size, hop, window }
  const before = Math.floor((size - length) / 2)
  return { size, hop, window: constantPadNd(window ?? fullOf([length], 1, 'float32'), [before, size - length - before]) }
}

const isComplex = (t: Tensor | null): boolean => t !== null && isComplexDType(t.dtype)

/** Frames times the window; with ones as they are. */
const windowed = (frames: Tensor, { window }: Frames): Tensor => (window === null ? frames : mul(frames, window))

/**
 * The Fourier transforms of overlapping frames of signals, each times a window: of `nFft` elements, `hopLength` apart. With `center` the signal is padded, so that frame t is centered at element
 * t * hopLength. Real signals give the first floor(nFft / 2) + 1 frequencies, unless `onesided` is false. PyTorch's `torch.stft`, which wants `returnComplex` to be said for real
 * signals; here it is true by default, and false gives pairs of numbers.
 *
 * Shapes: `self` [n] or [batch, n], `window` [winLength]; the result is [frequencies, frames] or [batch, frequencies, frames].
 *
 * @throws ShapeError unless `self` is a signal or a batch of them, and the window has winLength elements.
 * @throws ArgumentError for lengths out of range, signals shorter than a frame, or `onesided` of complex numbers.
 * @throws DTypeError unless `self` is floating or complex.
 * @example torch.stft(torch.ones([8]), 4, { hopLength: 4 }).shape // [3, 3]
 */
export const stft: Op['stft'] = defineOp({
  schema:
    "stft(Tensor self, int n_fft, int? hop_length=None, int? win_length=None, Tensor? window=None, bool center=True, str pad_mode='reflect', bool normalized=False, bool? onesided=None, bool? return_complex=None) -> Tensor",
  method: true,
  autocast: 'float32',
  decompose: (self, nFft, hopLength, winLength, window, center, padMode, normalized, givenOnesided, returnComplex) => {
    const op = 'torch.stft'
    if (!self.isFloatingPoint() && !isComplex(self))
      throw new DTypeError(`${op}: expected floating-point or complex numbers, got ${self.dtype}. Convert first: x.float().`)
    if (self.ndim !== 1 && self.ndim !== 2)
      throw new ShapeError(`${op}: self must have the shape [n] or [batch, n], got ${formatShape(self.symSizes)}.`)
    const frames = framesOf(op, nFft, hopLength, winLength, window)
    const onesided = givenOnesided ?? !(isComplex(self) || isComplex(window))
    if (onesided && (isComplex(self) || isComplex(window)))
      throw new ArgumentError(`${op}: complex numbers have no half transform: leave out onesided, or set it to false.`)
    const batch = self.ndim === 1 ? unsqueeze(self, 0) : self
    const around = Math.floor(nFft / 2)
    const signal = center ? squeeze(pad(unsqueeze(batch, 1), [around, around], { mode: padModeOf(op, padMode) }), 1) : batch
    if (sizeAt(signal.sizes, -1) < nFft)
      throw new ArgumentError(`${op}: argument 'nFft' must be at most the length of the signal, ${sizeAt(signal.symSizes, -1)}, got ${nFft}.`)
    const norm = normalized ? 'ortho' : null
    const cut = windowed(unfold(signal, -1, nFft, frames.hop), frames)
    const result = transpose(onesided ? rfft(cut, { norm }) : fft(cut, { norm }), 1, 2)
    const shaped = self.ndim === 1 ? squeeze(result, 0) : result
    return returnComplex === false ? viewAsReal(shaped) : shaped
  },
})

const PAD_MODES: readonly PadMode[] = ['constant', 'reflect', 'replicate', 'circular']

function padModeOf(op: string, given: string): PadMode {
  const mode = PAD_MODES.find((name) => name === given)
  if (mode === undefined) throw new ArgumentError(`${op}: argument 'padMode' must be one of ${PAD_MODES.join(', ')}, got '${given}'.`)
  return mode
}

/** The sums of frames [batch, frames, size] where they lie in a signal of `length` elements. */
function overlapped(frames: Tensor, { hop }: Frames, length: number): Tensor {
  const [batch, count, size] = [sizeAt(frames.sizes, 0), sizeAt(frames.sizes, 1), sizeAt(frames.sizes, 2)]
  const starts = mul(unsqueeze(arange(count, { dtype: 'int64' }), 1), hop)
  const positions = reshape(add(starts, arange(size, { dtype: 'int64' })), [-1])
  return indexAdd(fullOf([batch, length], 0, frames.dtype), 1, positions, reshape(frames, [batch, count * size]))
}

/**
 * The signals of which {@link stft} gives the transforms: inverse transforms of the frames, times the window, are summed and divided by the sum of the squares of the windows. `length` cuts the
 * result, or appends zeros. PyTorch's `torch.istft`.
 *
 * Shapes: `self` [frequencies, frames] or [batch, frequencies, frames] gives [n] or [batch, n].
 *
 * @throws ShapeError unless `self` has these dimensions, and the frequencies are those of nFft.
 * @throws DTypeError unless `self` is complex.
 * @throws ArgumentError for lengths out of range, or if the windows leave elements without a value.
 * @example torch.istft(torch.stft(torch.ones([8]), 4), 4).shape // [8]
 */
export const istft: Op['istft'] = defineOp({
  schema:
    'istft(Tensor self, int n_fft, int? hop_length=None, int? win_length=None, Tensor? window=None, bool center=True, bool normalized=False, bool? onesided=None, int? length=None, bool return_complex=False) -> Tensor',
  method: true,
  tags: ['rejectsData'],
  decompose: (self, nFft, hopLength, winLength, window, center, normalized, givenOnesided, length, returnComplex) => {
    const op = 'torch.istft'
    if (!isComplex(self)) throw new DTypeError(`${op}: self must be complex, as torch.stft gives it, got ${self.dtype}; use torch.viewAsComplex(x).`)
    if ((self.ndim !== 2 && self.ndim !== 3) || self.numel === 0)
      throw new ShapeError(
        `${op}: self must have the shape [frequencies, frames] or [batch, frequencies, frames], got ${formatShape(self.symSizes)}.`,
      )
    const frames = framesOf(op, nFft, hopLength, winLength, window)
    const half = Math.floor(nFft / 2) + 1
    const frequencies = sizeAt(self.sizes, -2)
    const onesided = givenOnesided ?? frequencies !== nFft
    if (frequencies !== (onesided ? half : nFft))
      throw new ShapeError(`${op}: self must have ${onesided ? half : nFft} frequencies for nFft ${nFft}, got shape ${formatShape(self.symSizes)}.`)
    if (returnComplex && onesided)
      throw new ArgumentError(`${op}: a half transform gives real signals: leave out returnComplex, or set onesided to false.`)
    if (!returnComplex && isComplex(window)) throw new ArgumentError(`${op}: with a complex window set returnComplex to true.`)
    if (frames.hop > (winLength ?? nFft)) throw new ArgumentError(`${op}: argument 'hopLength' must be at most winLength, got ${frames.hop}.`)
    const spectra = transpose(self.ndim === 2 ? unsqueeze(self, 0) : self, 1, 2)
    const norm = normalized ? 'ortho' : null
    const parts = returnComplex ? ifft(spectra, { norm }) : irfft(onesided ? spectra : narrow(spectra, -1, 0, half), { n: nFft, norm })
    const count = sizeAt(spectra.sizes, 1)
    const whole = nFft + frames.hop * (count - 1)
    const from = center ? Math.floor(nFft / 2) : 0
    const to = length === null ? (center ? whole - from : whole) : from + length
    const cut = (x: Tensor): Tensor => narrow(x, -1, from, Math.max(0, Math.min(to, whole) - from))
    const squares = square(frames.window ?? fullOf([nFft], 1, realDType(self.dtype)))
    const weights = cut(overlapped(expand(squares, [1, count, nFft]), frames, whole))
    if (!weights.isFake && weights.numel > 0 && !(amin(weights.detach().abs()).item() > 1e-11))
      throw new ArgumentError(`${op}: the windows leave elements of the signal without a value; take a smaller hopLength or another window.`)
    const signal = div(cut(overlapped(windowed(parts, frames), frames, whole)), weights)
    const padded = to > whole ? constantPadNd(signal, [0, to - whole]) : signal
    return self.ndim === 2 ? squeeze(padded, 0) : padded
  },
})
