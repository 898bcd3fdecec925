// The functions of images: tensors in, tensors out. torchvision.transforms.v2.functional.
export {
  centerCrop,
  crop,
  horizontalFlip,
  horizontalFlip as hflip,
  pad,
  resize,
  resizedCrop,
  verticalFlip,
  verticalFlip as vflip,
} from './geometry.ts'
export type { InterpolationOptions, PadImageOptions, Padding, PaddingMode, ResizeOptions } from './geometry.ts'
export { adjustBrightness, adjustContrast, adjustHue, adjustSaturation, rgbToGrayscale } from './color.ts'
export type { Factor } from './color.ts'
export { erase, normalize, toDtype } from './values.ts'
export type { ToDtypeOptions } from './values.ts'
