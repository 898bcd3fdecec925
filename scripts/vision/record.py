# Records what torchvision computes for functions of images: python3 scripts/vision/record.py test/goldens/vision. Written for torchvision 0.14.
import gzip
import io
import json
import sys

import torch
import torchvision.transforms.functional as F
from PIL import Image
from torchvision.transforms import InterpolationMode

torch.set_num_threads(1)
generator = torch.Generator().manual_seed(3)

colors = torch.randint(0, 256, (3, 7, 9), generator=generator, dtype=torch.uint8)
colors[:, 0, :3] = colors[0, 0, :3]  # gray
colors[:, 1, 0] = 0  # black
images = {
    'bytes': colors,
    'floats': torch.rand(2, 3, 6, 8, generator=generator),
    'gray': torch.rand(1, 5, 5, generator=generator),
}


def plain(tensor):
    values = tensor.flatten().tolist()
    return dict(shape=list(tensor.shape), dtype=str(tensor.dtype)[6:], values=[float('%.9g' % value) for value in values])


cases = []


def record(name, args, image, result, options=None):
    cases.append(dict(name=name, args=args, options=options, image=image, result=plain(result)))


for key, x in images.items():
    for size in [[4, 5], [12, 10], [3], [1, 1]]:
        for mode in ['nearest', 'bilinear', 'bicubic']:
            for antialias in [True, False] if mode != 'nearest' else [None]:
                result = F.resize(x, size, interpolation=InterpolationMode(mode), antialias=antialias)
                record('resize', [size], key, result, dict(interpolation=mode, antialias=bool(antialias)))
    record('resize', [[4]], key, F.resize(x, [4], max_size=5, antialias=True), dict(maxSize=5))
    for size in [[3, 3], [4, 5], [9, 4], [4, 12], [11, 13], [5, 4]]:
        record('centerCrop', [size], key, F.center_crop(x, size))
    for box in [[1, 2, 3, 4], [-2, -1, 4, 5], [4, 3, 6, 7], [-1, -1, 9, 12]]:
        record('crop', box, key, F.crop(x, *box))
    record('resizedCrop', [1, 2, 4, 3, [6, 2]], key, F.resized_crop(x, 1, 2, 4, 3, [6, 2], antialias=True))
    for padding in [[1], [2, 1], [1, 0, 2, 3]]:
        for mode in ['constant', 'edge', 'reflect', 'symmetric']:
            record('pad', [padding], key, F.pad(x, padding, padding_mode=mode), dict(paddingMode=mode))
    record('pad', [[1, 2]], key, F.pad(x, [1, 2], fill=1), dict(fill=1))
    record('horizontalFlip', [], key, F.hflip(x))
    record('verticalFlip', [], key, F.vflip(x))
    record('rgbToGrayscale', [], key, F.rgb_to_grayscale(x))
    for factor in [0, 0.4, 1, 1.7]:
        record('adjustBrightness', [factor], key, F.adjust_brightness(x, factor))
        record('adjustContrast', [factor], key, F.adjust_contrast(x, factor))
        record('adjustSaturation', [factor], key, F.adjust_saturation(x, factor))
    for factor in [-0.5, -0.21, 0, 0.13, 0.5]:
        record('adjustHue', [factor], key, F.adjust_hue(x, factor))
    if x.is_floating_point():
        mean, std = [0.4, 0.5, 0.6][: x.shape[-3]], [0.2, 0.3, 0.25][: x.shape[-3]]
        record('normalize', [mean, std], key, F.normalize(x, mean, std))
    record('erase', [1, 2, 2, 3, 0], key, F.erase(x, 1, 2, 2, 3, torch.tensor(0, dtype=x.dtype)))
    for dtype in ['float32', 'float64', 'uint8', 'int16', 'int8']:
        record('toDtype', [dtype], key, F.convert_image_dtype(x, getattr(torch, dtype)), dict(scale=True))

folder = sys.argv[1]
text = json.dumps(dict(images={key: plain(x) for key, x in images.items()}, cases=cases), separators=(',', ':'))
with open(f'{folder}/functional.json.gz', 'wb') as file:
    file.write(gzip.compress(text.encode(), 9, mtime=0))

# A photograph in small: smooth colors, stored lying on its side with the orientation that turns it upright.
ys, xs = torch.meshgrid(torch.arange(24), torch.arange(32), indexing='ij')
smooth = torch.stack([xs * 7, ys * 9, 255 - xs * 4], dim=-1).clamp(0, 255).to(torch.uint8)
picture = Image.fromarray(smooth.numpy())
buffer = io.BytesIO()
exif = Image.Exif()
exif[0x0112] = 6
picture.save(buffer, 'JPEG', quality=92, exif=exif)
with open(f'{folder}/turned.jpg', 'wb') as file:
    file.write(buffer.getvalue())
print(len(cases), 'cases')
