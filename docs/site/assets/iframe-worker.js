// Browsers start no worker from file://, so there the search works in a hidden frame. The theme asks for a file of this name.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      this.waiting = [];
      const frame = document.createElement("iframe");
      frame.hidden = true;
      frame.title = "search";
      frame.onload = () => {
        const inside = frame.contentWindow;
        inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
        inside.importScripts = (...urls) =>
          Promise.all(urls.map((one) => new Promise((done) => this.load(inside, one, done))));
        this.load(inside, url, () => {
          this.inside = inside;
          this.waiting.splice(0).forEach((data) => this.postMessage(data));
        });
      };
      document.body.append(frame);
    }
    load(inside, url, done) {
      const script = inside.document.createElement("script");
      script.src = url;
      script.onload = done;
      inside.document.head.append(script);
    }
    postMessage(data) {
      if (this.inside) this.inside.dispatchEvent(new this.inside.MessageEvent("message", { data }));
      else this.waiting.push(data);
    }
    terminate() {}
  };
}
