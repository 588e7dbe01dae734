// Goes through frames, one by one or by itself; what moves within a frame is seen to move.
import { make, pressed, still } from "./dom.ts";

export abstract class Playback {
  protected position = 0;
  /** The share of the frame that is over. */
  protected time = 1;
  /** Milliseconds that the frame is shown while it plays. */
  protected length = 1000;
  protected isPlaying = false;
  private timer = 0;
  private readonly button = make("button", "braid-go");

  /** The position of the last frame. */
  protected abstract get last(): number;

  /** Shows another frame, or the same one otherwise. */
  protected abstract show(): void;

  /** Paints what has moved within the frame. */
  protected abstract paint(): void;

  /** Adds the buttons: to play, one back, one on. */
  protected addButtons(bar: HTMLElement): void {
    bar.append(this.button);
    this.button.onclick = () => this.playOrStop();
    pressed(bar, "◀", () => this.step(-1), "", "back");
    pressed(bar, "▶", () => this.step(1), "", "forward");
  }

  protected showButtons(): void {
    this.button.textContent = this.isPlaying ? "❚❚ Pause" : "▶ Play";
  }

  protected go(to: number, glides = false): void {
    this.stop();
    this.position = Math.max(0, Math.min(this.last, to));
    if (glides && !still()) this.glide();
    else this.show();
  }

  protected step(by: number): void {
    this.go(this.position + by, by > 0);
  }

  protected playOrStop(): void {
    if (this.isPlaying) this.go(this.position);
    else this.glide(true);
  }

  /** Stays at the frame that is shown. */
  stop(): void {
    cancelAnimationFrame(this.timer);
    Object.assign(this, { timer: 0, isPlaying: false, time: 1 });
  }

  /** Moves through the frame; plays on through those after it, from the first one at the end. */
  protected glide(isPlaying = false): void {
    this.stop();
    if (isPlaying && this.position >= this.last) this.position = 0;
    Object.assign(this, { isPlaying, time: 0 });
    let before = performance.now();
    const tick = (now: number) => {
      this.time += (now - before) / this.length;
      before = now;
      this.timer = requestAnimationFrame(tick);
      if (this.time < 1) this.paint();
      else if (!isPlaying || this.position >= this.last) this.go(this.position);
      else {
        Object.assign(this, { position: this.position + 1, time: 0 });
        this.show();
      }
    };
    this.timer = requestAnimationFrame(tick);
    this.show();
  }
}
