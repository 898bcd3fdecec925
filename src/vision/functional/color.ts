// The colors of an image: gray, brightness, contrast, saturation, hue. Factors are numbers, or tensors without dimensions: those of a random transform are drawn within a compiled graph.
import { full, stack, where as select, zerosLike } from '../../ops/index.ts'
import { checkArgument, checkCount } from '../../protocol/index.ts'
import { Tensor } from '../../tensor/index.ts'
import { checkColors, checkPixels } from '../image.ts'
import { toDtype } from './values.ts'

/** How much a property changes. */
export type Factor = number | Tensor

function checkFactor(where: string, factor: Factor): void {
  if (!(factor instanceof Tensor))
    checkArgument(typeof factor === 'number' && factor >= 0, where, 'factor', 'a number of at least 0, or a Tensor', factor)
}

/** Red, green and blue, each [..., H, W]. */
const colorsOf = (image: Tensor): readonly [red: Tensor, green: Tensor, blue: Tensor] => [
  image.select(-3, 0),
  image.select(-3, 1),
  image.select(-3, 2),
]

/** How bright each pixel is: [..., 1, H, W], in the dtype of the image. */
function luma(image: Tensor): Tensor {
  const [red, green, blue] = colorsOf(image)
  return red.mul(0.2989).add(green.mul(0.587)).add(blue.mul(0.114)).to(image.dtype).unsqueeze(-3)
}

/**
 * An image without colors, by how bright red, green and blue seem. `outputChannels` is 1 (default) or 3, which are then alike. torchvision's `rgb_to_grayscale`.
 *
 * Shape: [..., 1 or 3, H, W] to [..., outputChannels, H, W].
 *
 * @throws ShapeError for another number of channels.
 * @example functional.rgbToGrayscale(torch.ones([3, 1, 1])).toArray() // [[[0.9999000430107117]]]
 */
export function rgbToGrayscale(image: Tensor, outputChannels: 1 | 3 = 1): Tensor {
  const name = 'functional.rgbToGrayscale'
  checkCount(name, arguments, 2)
  const channels = checkColors(name, image)
  checkArgument(outputChannels === 1 || outputChannels === 3, name, 'outputChannels', '1 or 3', outputChannels)
  const gray = channels === 3 ? luma(image) : image.clone()
  return outputChannels === 1 ? gray : gray.expand([...image.shape.slice(0, -3), 3, ...image.shape.slice(-2)])
}

/** `factor * image + (1 - factor) * other`, within the range of the image. */
export function blend(image: Tensor, other: Tensor, factor: Factor): Tensor {
  const rest = typeof factor === 'number' ? 1 - factor : factor.neg().add(1)
  const mixed = image.mul(factor).add(other.mul(rest))
  return mixed.clamp(0, image.isFloatingPoint() ? 1 : 255).to(image.dtype)
}

/** What {@link blend} mixes an image with. */
export const baseOf: Readonly<Record<'brightness' | 'contrast' | 'saturation', (image: Tensor) => Tensor>> = {
  brightness: (image) => zerosLike(image),
  contrast(image) {
    const gray = image.size(-3) === 3 ? luma(image) : image
    return gray.to(image.isFloatingPoint() ? image.dtype : 'float32').mean([-3, -2, -1], { keepdim: true })
  },
  saturation: (image) => (image.size(-3) === 3 ? luma(image) : image),
}

/** One of the functions that mix an image with another one. */
const adjust = (property: keyof typeof baseOf, name: string, image: Tensor, factor: Factor): Tensor => {
  checkColors(name, image)
  checkPixels(name, image)
  checkFactor(name, factor)
  if (property === 'saturation' && image.size(-3) === 1) return image
  return blend(image, baseOf[property](image), factor)
}

/**
 * An image darker or brighter: 0 is black, 1 the image, 2 twice as bright. Values stay between 0 and 1, or 0 and 255 for bytes. torchvision's `adjust_brightness`.
 *
 * Shape: [..., 1 or 3, H, W], unchanged.
 *
 * @throws ArgumentError for a negative factor; DTypeError for integers other than uint8.
 * @example functional.adjustBrightness(torch.tensor([[[0.25, 0.75]]]), 2).toArray() // [[[0.5, 1]]]
 */
export function adjustBrightness(image: Tensor, factor: Factor): Tensor {
  checkCount('functional.adjustBrightness', arguments, 2)
  return adjust('brightness', 'functional.adjustBrightness', image, factor)
}

/**
 * An image with less or more contrast: 0 is one gray, 1 the image. torchvision's `adjust_contrast`.
 *
 * Shape: [..., 1 or 3, H, W], unchanged.
 *
 * @throws ArgumentError for a negative factor; DTypeError for integers other than uint8.
 * @example functional.adjustContrast(torch.tensor([[[0.25, 0.75]]]), 0).toArray() // [[[0.5, 0.5]]]
 */
export function adjustContrast(image: Tensor, factor: Factor): Tensor {
  checkCount('functional.adjustContrast', arguments, 2)
  return adjust('contrast', 'functional.adjustContrast', image, factor)
}

/**
 * An image with paler or stronger colors: 0 is gray, 1 the image. An image of one channel stays as it is. torchvision's `adjust_saturation`.
 *
 * Shape: [..., 1 or 3, H, W], unchanged.
 *
 * @throws ArgumentError for a negative factor; DTypeError for integers other than uint8.
 */
export function adjustSaturation(image: Tensor, factor: Factor): Tensor {
  checkCount('functional.adjustSaturation', arguments, 2)
  return adjust('saturation', 'functional.adjustSaturation', image, factor)
}

/**
 * An image whose colors are turned on the color wheel: 0 leaves them, 0.5 and -0.5 give the complementary ones. An image of one channel stays as it is. torchvision's `adjust_hue`.
 *
 * Shape: [..., 1 or 3, H, W], unchanged.
 *
 * @throws ArgumentError for a factor outside of -0.5 to 0.5; DTypeError for integers other than uint8.
 * @example functional.adjustHue(torch.tensor([[[1]], [[0]], [[0]]]), 1 / 3).round().toArray() // [[[0]], [[1]], [[0]]]
 */
export function adjustHue(image: Tensor, factor: Factor): Tensor {
  const name = 'functional.adjustHue'
  checkCount(name, arguments, 2)
  const channels = checkColors(name, image)
  checkPixels(name, image)
  if (!(factor instanceof Tensor))
    checkArgument(typeof factor === 'number' && Math.abs(factor) <= 0.5, name, 'factor', 'a number between -0.5 and 0.5, or a Tensor', factor)
  if (channels === 1) return image
  const turned = turnedHue(image.dtype === 'uint8' ? toDtype(image, 'float32', { scale: true }) : image, factor)
  return image.dtype === 'uint8' ? toDtype(turned, 'uint8', { scale: true }) : turned
}

/** Floats with another hue, by way of hue, saturation and value. */
function turnedHue(image: Tensor, factor: Factor): Tensor {
  const [red, green, blue] = colorsOf(image)
  const value = image.amax(-3)
  const chroma = value.sub(image.amin(-3))
  // A gray pixel has no hue: all that follows is 0 or unused there, and must not be divided by 0.
  const isGray = chroma.eq(0)
  const one = full([], 1, { dtype: image.dtype })
  const saturation = chroma.div(select(isGray, one, value))
  const divisor = select(isGray, one, chroma)
  const below = (color: Tensor): Tensor => value.sub(color).div(divisor)
  const [r, g, b] = [below(red), below(green), below(blue)]
  const sixths = select(value.eq(red), b.sub(g), select(value.eq(green), r.sub(b).add(2), g.sub(r).add(4)))
  const hue = sixths.div(6).add(1).fmod(1).add(factor).remainder(1)

  // Each color is highest for two sixths of the wheel, lowest for two, and between them on a ramp.
  const channel = (offset: number): Tensor => {
    const place = hue.mul(6).add(offset).remainder(6)
    const ramp = place.minimum(place.neg().add(4)).clamp(0, 1)
    return value.sub(value.mul(saturation).mul(ramp))
  }
  return stack([channel(5), channel(3), channel(1)], -3)
}
